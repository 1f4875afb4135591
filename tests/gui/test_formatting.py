"""Quantities as words."""

import pytest

from gui.formatting import (
    GIB,
    MIB,
    and_words,
    bytes_words,
    count_words,
    layers_words,
    missing_bytes_words,
    rate_words,
    round_bytes_words,
    seconds_words,
    split_bytes,
)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 MB"),
        (1, "0.1 MB"),
        (3 * MIB, "3.0 MB"),
        (115 * MIB, "115 MB"),
        (1023 * MIB, "1023 MB"),
        (GIB - 1, "1.0 GB"),
        (round(162.9 * GIB), "162.9 GB"),
    ],
)
def test_a_measured_amount_has_the_unit_that_fits_its_size(count, words):
    assert bytes_words(count) == words


def test_number_and_unit_come_apart_for_setting_them_in_two_sizes():
    assert split_bytes(round(162.9 * GIB)) == ("162.9", "GB")


@pytest.mark.parametrize(
    ("gib", "words"), [(178, "178 GB"), (2, "2 GB"), (1.5, "1.5 GB"), (10.4, "10 GB"), (0.5, "512 MB")]
)
def test_memory_of_a_mac_is_said_as_people_say_it(gib, words):
    assert round_bytes_words(round(gib * GIB)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (round(16.71 * GIB), "16.8 GB"),
        (round(265.5 * GIB), "265.5 GB"),
        (2 * MIB + 1, "3.0 MB"),
        (40 * MIB, "40 MB"),
        (1, "1.0 MB"),
    ],
)
def test_what_is_missing_is_never_rounded_down(count, words):
    assert missing_bytes_words(count) == words


@pytest.mark.parametrize(("rate", "words"), [(31.24, "31.2 tok/s"), (0, "0.0 tok/s"), (1234.5, "1,234 tok/s")])
def test_rates(rate, words):
    assert rate_words(rate) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "40 ms"),
        (0.41, "0.4 s"),
        (0.0996, "0.1 s"),
        (9.96, "10 s"),
        (42.2, "42 s"),
        (59.7, "1 min 0 s"),
        (65, "1 min 5 s"),
        (7380, "2 h 3 min"),
        (-1, "0 ms"),
    ],
)
def test_a_duration_is_as_exact_as_matters_at_its_size(seconds, words):
    assert seconds_words(seconds) == words


def test_counts_and_runs_of_layers_read_as_language():
    assert count_words(1, "layer") == "1 layer"
    assert count_words(30, "layer") == "30 layers"
    assert layers_words(5, 22) == "layers 5–22"
    assert layers_words(29, 29) == "layer 29"
    assert and_words(["a"]) == "a"
    assert and_words(["a", "b", "c"]) == "a, b and c"
