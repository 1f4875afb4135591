"""Words of the command line: what is read, and the sentence about what is not."""

from argparse import ArgumentTypeError

import pytest

from runtime.cli import arguments


@pytest.mark.parametrize(
    ("reader", "word", "value"),
    [
        (arguments.natural, "0", 0),
        (arguments.positive, "12", 12),
        (arguments.port, "65535", 65535),
        (arguments.share, "0.5", 0.5),
        (arguments.temperature, "0", 0.0),
        (arguments.split, "5,18,7", (5, 18, 7)),
        (arguments.counts, "1,4,8", (1, 4, 8)),
        (arguments.names, "Studio", ("Studio",)),
        (arguments.group, "Studio, Pro", ("Studio", "Pro")),
    ],
)
def test_a_word_is_read(reader, word, value):
    assert reader(word) == value


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (arguments.natural, ["-1", "1.5", "", str(1 << 63)]),
        (arguments.positive, ["0", "many"]),
        (arguments.port, ["65536", "-1"]),
        (arguments.share, ["0", "1.1", "half", "nan"]),
        (arguments.temperature, ["-0.1", "11", "hot", "nan", "inf"]),
        (arguments.split, ["5,", "5;18"]),
        (arguments.counts, ["0", "1,,4", "١"]),
        (arguments.names, ["Studio,", ""]),
        (arguments.group, ["Studio", "Studio,,Pro"]),
    ],
)
def test_another_word_is_named_in_a_sentence(reader, words):
    for word in words:
        with pytest.raises(ArgumentTypeError, match="'"):
            reader(word)
