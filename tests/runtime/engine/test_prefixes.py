"""Which sequences are kept, which serve, and where snapshots are taken: pure arithmetic on tokens."""

from __future__ import annotations

from runtime.engine.caches import UNLIMITED_TOKENS
from runtime.engine.prefixes import KEPT_SEQUENCES, KeptPrefixes, Match


def test_caches_that_can_be_cut_need_no_snapshots():
    prefixes = KeptPrefixes(1000, UNLIMITED_TOKENS)
    assert prefixes.keep(1, range(100)) == []
    assert prefixes.snapshot_points(range(300), 0) == []
    assert prefixes.match([*range(60), 7, 7]) == Match(1, 60)


def test_caches_that_cannot_be_cut_serve_prompts_that_begin_with_all_of_them():
    prefixes = KeptPrefixes(1000, 0)
    prefixes.keep(1, range(100))
    assert prefixes.match([*range(60), 7, 7]) is None
    assert prefixes.match([*range(100), 7]) == Match(1, 100)


def test_snapshots_double_and_end_with_the_prompt():
    prefixes = KeptPrefixes(1000, 0)
    assert prefixes.snapshot_points(range(501), 0) == [64, 128, 256, 500]
    assert prefixes.snapshot_points(range(501), 128) == [256, 500]
    assert prefixes.snapshot_points(range(20), 0) == [19]
    assert KeptPrefixes(1000, 100).snapshot_points(range(501), 0) == [100, 200, 400, 500]
    assert KeptPrefixes(0, 0).snapshot_points(range(501), 0) == []


def test_a_snapshot_is_taken_where_a_prompt_leaves_one_that_is_kept():
    prefixes = KeptPrefixes(2000, 0)
    prefixes.keep(1, range(400))
    prefixes.keep(2, range(128))
    prompt = [*range(300), *range(900, 1000)]
    assert prefixes.match(prompt) == Match(2, 128)
    assert prefixes.snapshot_points(prompt, 128) == [256, 300, 399]


def test_any_shared_beginning_finds_at_least_half_of_it():
    first = list(range(1000))
    for shared in range(130, 999, 31):
        prefixes = KeptPrefixes(10_000, 0)
        for number, point in enumerate(prefixes.snapshot_points(first, 0)):
            prefixes.keep(number, first[:point])
        second = [*first[:shared], *range(5000, 5100)]
        found = prefixes.match(second)
        assert found is not None
        assert found.token_count >= shared / 2
        prefixes.keep(100, second[: prefixes.snapshot_points(second, found.token_count)[0]])


def test_the_least_recently_used_go_first_and_room_counts():
    prefixes = KeptPrefixes(100, 0)
    assert prefixes.keep(1, range(40)) == []
    assert prefixes.keep(2, range(100, 140)) == []
    assert prefixes.match([*range(40), 1]) == Match(1, 40)
    assert prefixes.keep(3, range(200, 240)) == [2]
    assert prefixes.shrink(50) == [1]
    assert prefixes.keep(4, range(300, 360), room_tokens=50) == [4]
    assert prefixes.keep(5, range(3)) == [5]  # not worth it


def test_as_many_sequences_are_kept_as_their_state_has_room_for():
    prefixes = KeptPrefixes(10_000, 0)
    dropped = [prefixes.keep(number, range(number, number + 10)) for number in range(KEPT_SEQUENCES + 2)]
    assert dropped[-2:] == [[0], [1]]
    few = KeptPrefixes(10_000, 0, sequence_limit=2)
    assert [few.keep(number, range(number, number + 10)) for number in range(3)] == [[], [], [0]]
