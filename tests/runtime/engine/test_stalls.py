"""A step that takes far longer than those before it is a stall; a slow machine's or a long prompt's is none."""

from __future__ import annotations

import pytest

from runtime.engine.stalls import Pace, StallWatch, StillWatch

DECODE_SECONDS = 0.05


@pytest.fixture
def pace():
    pace = Pace()
    pace.add(1, DECODE_SECONDS)
    return pace


def watched(pace: Pace, seconds: float, tokens: int = 1, idle_seconds: float = 0.0) -> float:
    """What the watch of a rank that computes says at the end of so long a step after a pause."""
    watch = StallWatch(pace, has_gpu=False)
    now, said = 1.0, watch.look(1.0, 7, 0, 1.0, 0)
    begun = now + idle_seconds
    while now < begun + seconds:
        now += 0.1
        said = watch.look(now, 7, tokens if now > begun else 0, now, 0)
    return said


def test_a_token_that_never_comes_is_a_stall_within_four_seconds(pace):
    assert watched(pace, 3.0) == 0.0
    assert watched(pace, 4.0) > 3.5


def test_a_slow_machine_has_ten_times_its_slowest_step(pace):
    pace.add(1, 2.0)
    assert watched(pace, 19.0) == 0.0
    assert watched(pace, 21.0) > 20.0


def test_a_longer_chunk_than_any_before_has_time_in_proportion(pace):
    assert watched(pace, 119.0, tokens=512) == 0.0
    pace.add(512, 0.6)
    assert watched(pace, 5.0, tokens=512) == 0.0
    assert watched(pace, 7.0, tokens=512) > 6.0


def test_a_smaller_chunk_has_as_much_time_as_a_larger_one_took(pace):
    pace.add(512, 1.0)
    assert watched(pace, 9.0, tokens=64) == 0.0
    assert watched(pace, 11.0, tokens=64) > 10.0


def test_the_first_step_of_all_has_two_minutes():
    assert watched(Pace(), 119.0) == 0.0
    assert watched(Pace(), 121.0) > 119.0


def test_after_a_long_pause_weights_may_have_to_come_back_to_memory(pace):
    assert watched(pace, 29.0, idle_seconds=90.0) == 0.0
    assert watched(pace, 31.0, idle_seconds=90.0) > 29.0
    assert watched(pace, 4.0, idle_seconds=30.0) > 3.5


@pytest.mark.parametrize("cpu_share", [0.0, 1.0])
def test_a_rank_that_hangs_is_told_from_one_that_spins_for_it(pace, cpu_share):
    watch = StallWatch(pace, has_gpu=True)
    watch.look(1.0, 7, 0, 20.0, 0)  # what it computed before does not count
    said = [watch.look(1.0 + look / 10, 7, 1, 20.0 + cpu_share * look / 10, 0) for look in range(1, 50)]
    assert said[-1]
    assert watch.cpu_share == pytest.approx(cpu_share)


def test_time_that_the_process_did_not_have_does_not_count(pace):
    watch = StallWatch(pace, has_gpu=False)
    watch.look(1.0, 7, 1, 1.0, 0)
    assert watch.look(1000.0, 7, 1, 1.0, 0) == 0.0


def test_steps_that_end_are_no_stall(pace):
    watch = StallWatch(pace, has_gpu=False)
    assert not any(watch.look(now / 10, now, 1, 1.0, 0) for now in range(10, 1000))


@pytest.mark.parametrize(
    ("cpu_share", "reads_per_look", "has_gpu", "stalls"),
    [(0.0, 0, False, True), (0.0, 0, True, False), (0.5, 0, False, False), (0.0, 1, False, False)],
    ids=["nothing at all", "its GPU may compute", "computes or spins", "comes back to memory"],
)
def test_a_slow_step_in_which_nothing_happens_is_a_stall_long_before_its_time_is_over(
    pace, cpu_share, reads_per_look, has_gpu, stalls
):
    pace.add(1, 2.0)
    watch = StallWatch(pace, has_gpu=has_gpu)
    said = []
    for look in range(200):
        now = look / 10
        in_step = now > 10.0  # before, it has nothing to do
        said.append(watch.look(now, 7, int(in_step), cpu_share * now, look * reads_per_look))
    assert bool(said[149]) == stalls
    assert not any(said[:140])


@pytest.mark.parametrize(
    ("cpu_share", "reads_per_look", "stalls"),
    [(0.0, 0, True), (0.005, 0, True), (0.3, 0, False), (0.0, 1, False)],
    ids=["nothing at all", "its watchers alone", "computes", "reads from a slow disk"],
)
def test_a_load_in_which_nothing_happens_is_a_stall_within_five_seconds(cpu_share, reads_per_look, stalls):
    watch, said = StillWatch(), []
    for look in range(49):
        now = 10 + look / 10
        said.append(watch.look(now, cpu_share * now, look * reads_per_look))
    assert bool(said[-1]) == stalls
    assert not any(said[:40])


def test_a_process_that_was_stopped_itself_did_not_stall_in_loading():
    watch = StillWatch()
    watch.look(1.0, 0.5, 7)
    assert not watch.look(3000.0, 0.5, 7)
