"""The schedule's arithmetic: lines through measured steps, and what follows from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.groups import Group, Groups
from runtime.engine.prefixes import KEPT_SEQUENCES, KeptPrefixes, Match
from runtime.engine.schedule import CHUNK_TOKENS, Pipeline, StepTimes, chunk_tokens, micro_batches


def measured(fixed: float, per_row: float) -> StepTimes:
    times = StepTimes()
    for rows in (1, 4, 2, 8, 3):
        times.add(rows, fixed + per_row * rows)
    return times


def test_a_line_is_found_again():
    assert measured(0.02, 0.003).line == pytest.approx((0.02, 0.003))


def test_one_row_count_alone_is_taken_for_arithmetic():
    times = StepTimes()
    times.add(4, 0.1)
    times.add(4, 0.1)
    assert times.line == pytest.approx((0.0, 0.025))


@given(st.lists(st.tuples(st.integers(1, 64), st.floats(1e-5, 10)), min_size=1, max_size=50))
def test_no_measurement_makes_a_negative_time(samples):
    times = StepTimes()
    for rows, seconds in samples:
        times.add(rows, seconds)
    fixed, per_row = times.line
    assert fixed >= 0
    assert per_row >= 0


@pytest.mark.parametrize(
    ("lines", "sequences", "wanted"),
    [
        ([(0.02, 0.0)], 8, 1),  # one stage has nobody to overlap with
        ([(0.0, 0.01), (0.0, 0.01)], 8, 2),  # arithmetic on two stages: one step each
        ([(0.0, 0.01)] * 3, 8, 3),
        ([(0.02, 0.0), (0.0001, 0.0)], 8, 1),  # a stage that does nearly all is the limit already
        ([(0.0, 0.01), (0.0, 0.01)], 1, 1),  # one sequence cannot be divided
    ],
)
def test_a_batch_is_divided_where_it_pays(lines, sequences, wanted):
    pipeline = Pipeline([measured(fixed, per_row) for fixed, per_row in lines])
    assert micro_batches(sequences, pipeline) == wanted


def test_before_anything_is_known_every_stage_gets_a_step():
    assert micro_batches(8, Pipeline([StepTimes(), StepTimes(), StepTimes()])) == 3
    assert micro_batches(2, Pipeline([StepTimes(), StepTimes(), StepTimes()])) == 2


def test_chunks_shrink_with_more_stages_and_grow_with_the_fixed_cost():
    def chunk(stages: int, fixed: float) -> int:
        return chunk_tokens(1000, Pipeline([measured(fixed, 0.001)] * stages), interleaved=False)

    assert chunk(1, 0.01) == CHUNK_TOKENS[1]
    assert chunk(4, 0.01) < chunk(2, 0.01) < chunk(2, 0.05)


def test_a_chunk_between_answers_keeps_within_its_time():
    pipeline = Pipeline([measured(0.05, 0.004)])
    assert chunk_tokens(1000, pipeline, interleaved=True) == 50
    assert chunk_tokens(1000, pipeline, interleaved=False) > 50


@given(st.integers(1, 10_000), st.integers(1, 5), st.floats(0, 1), st.floats(1e-6, 1), st.booleans())
def test_a_chunk_is_never_empty_nor_more_than_is_left(prompt_tokens, stages, fixed, per_token, interleaved):
    pipeline = Pipeline([measured(fixed, per_token)] * stages)
    count = chunk_tokens(prompt_tokens, pipeline, interleaved=interleaved)
    assert 1 <= count <= min(prompt_tokens, CHUNK_TOKENS[1])


# Groups ---------------------------------------------------------------------------------------------------------------


@given(st.data())
def test_every_request_is_in_one_group_and_gets_its_steps(data):
    groups = Groups(can_batch=data.draw(st.booleans()))
    present: set[int] = set()
    away: list[Group] = []
    for request in range(data.draw(st.integers(1, 30))):
        action = data.draw(st.sampled_from(("join", "leave", "step", "return")))
        if action == "join":
            groups.join(request)
            present.add(request)
        elif action == "leave" and present:
            gone = data.draw(st.sampled_from(sorted(present)))
            groups.leave(gone)
            present.remove(gone)
        elif action == "step":
            group = groups.ready(data.draw(st.integers(1, 4)))
            if group is not None:
                assert not group.in_flight
                assert group.members
                group.in_flight = True
                away.append(group)
        elif action == "return" and away:
            away.pop(0).in_flight = False
        assert groups.member_count == len(present)
    for group in away:
        group.in_flight = False
    stepped: set[int] = set()
    while (group := groups.ready(2)) is not None:
        group.in_flight = True
        assert stepped.isdisjoint(group.members)
        stepped.update(group.members)
    assert stepped == present


# Prefixes -------------------------------------------------------------------------------------------------------------


def test_the_longest_common_beginning_wins_and_the_last_token_is_left():
    kept = KeptPrefixes(1000, trim_limit_tokens=1000)
    assert kept.keep(1, range(10)) == []
    assert kept.keep(2, [*range(9), 50, *range(20)]) == []
    assert kept.match([*range(9), 50, 0, 1, 99]) == Match(2, 12)
    assert kept.match(range(10)) == Match(1, 9)
    assert kept.match([*range(5), 99]) is None  # too short to be worth it
    assert kept.match([99]) is None


def test_caches_that_cannot_be_cut_serve_only_what_begins_with_all_of_them():
    kept = KeptPrefixes(1000, trim_limit_tokens=0)
    kept.keep(1, range(10))
    assert kept.match([*range(9), 99]) is None
    assert kept.match([*range(10), 99]) == Match(1, 10)


def test_what_is_kept_is_bounded_and_superseded():
    kept = KeptPrefixes(100, trim_limit_tokens=1000)
    kept.keep(1, range(20))
    assert kept.keep(2, range(40)) == [1]
    assert kept.keep(3, range(100, 180)) == [2]
    assert kept.keep(4, range(101)) == [4]
    assert kept.keep(5, range(7)) == [5]


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=30), max_size=60), st.integers(0, 200), st.sampled_from((0, 15, 999))
)
def test_a_match_is_a_true_prefix_and_nothing_is_kept_twice(sequences, token_limit, trim_limit):
    kept = KeptPrefixes(token_limit, trim_limit)
    alive: dict[int, list[int]] = {}
    for number, tokens in enumerate(sequences):
        match = kept.match(tokens)
        if match is not None:
            assert alive[match.sequence][: match.token_count] == tokens[: match.token_count]
            assert match.token_count < len(tokens)
        alive[number] = tokens
        for gone in kept.keep(number, tokens):
            del alive[gone]
        assert len(alive) <= KEPT_SEQUENCES
        assert sum(map(len, alive.values())) <= token_limit
