"""Headers that the format allows are read; all others end in one sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.errors import PomonaError
from runtime.models.safetensors_header import (
    MAX_HEADER_BYTES,
    TensorInfo,
    header_length,
    parse_header,
    read_header,
    shown,
)
from tests.runtime.models.files import file_bytes, header, write_weights

SHAPES = {"embed": (4, 8), "scalar": (), "empty": (0, 3), "norm": (8,)}


def parse(contents: bytes) -> dict[str, TensorInfo]:
    """What :func:`read_header` does with a file of these contents, without the file."""
    length = header_length(contents[:8], len(contents), "x.safetensors")
    return parse_header(contents[8 : 8 + length], len(contents), "x.safetensors")


def test_names_types_shapes_and_places_are_read(tmp_path):
    path = tmp_path / "model.safetensors"
    write_weights(path, SHAPES)
    tensors = read_header(path)
    assert list(tensors) == list(SHAPES)
    assert {name: tensor.shape for name, tensor in tensors.items()} == SHAPES
    assert {name: tensor.byte_count for name, tensor in tensors.items()} == {
        "embed": 64,
        "scalar": 2,
        "empty": 0,
        "norm": 16,
    }
    assert tensors["norm"].end == path.stat().st_size


def test_a_place_in_the_file_is_where_the_bytes_are():
    entries = header({"first": (2,), "second": (1,)})
    contents = file_bytes(entries, 0) + b"aabbcc"
    second = parse(contents)["second"]
    assert contents[second.begin : second.end] == b"cc"


def test_a_header_need_not_be_in_the_order_of_the_data():
    entries = header({"first": (2,), "second": (1,)})
    assert list(parse(file_bytes(dict(reversed(entries.items())), 6))) == ["second", "first"]


def test_types_narrower_than_a_byte_are_counted_in_bits():
    entries = {"packed": {"dtype": "F4", "shape": [6], "data_offsets": [0, 3]}}
    assert parse(file_bytes(entries, 3))["packed"].byte_count == 3


def test_metadata_may_be_null_as_mlx_writes_it():
    assert set(parse(file_bytes(entry() | {"__metadata__": None}, 8))) == {"t"}


def entry(**changes):
    return {"t": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]} | changes}


@pytest.mark.parametrize(
    ("entries", "data_bytes", "complaint"),
    [
        (entry(), 7, "it has 79 of 80 bytes"),
        (entry(), 9, "1 bytes at its end"),
        (entry(data_offsets=[2, 10]), 10, "gap"),
        (entry() | {"u": {"dtype": "I8", "shape": [4], "data_offsets": [4, 8]}}, 8, "'u' overlaps"),
        (entry() | {"u": {"dtype": "I8", "shape": [4], "data_offsets": [9, 13]}}, 13, "'u' leaves a gap"),
        (entry(data_offsets=[8, 0]), 8, "disagree"),
        (entry(shape=[5]), 8, "disagree"),
        (entry(shape=[2**62] * 32), 8, "disagree"),
        (entry(dtype="F4", shape=[15]), 8, "disagree"),
        (entry(dtype="INT3"), 8, "unknown type 'INT3'"),
        (entry(dtype="x" * 500), 8, "unknown type 'xxx"),
        (entry(shape=[-4]), 8, "not what safetensors writes"),
        (entry(shape=[4.5]), 8, "not what safetensors writes"),
        (entry(shape=[1] * 33), 8, "not what safetensors writes"),
        (entry(shape=None), 8, "not what safetensors writes"),
        (entry(data_offsets=[0, 2**80]), 8, "not what safetensors writes"),
        (entry(data_offsets=[0]), 8, "not what safetensors writes"),
        ({"t": {"dtype": "BF16"}}, 0, "not what safetensors writes"),
        (entry() | {"__metadata__": {"format": 1}}, 8, "not what safetensors writes"),
        ([], 0, "not what safetensors writes"),
        ("text", 0, "not what safetensors writes"),
    ],
)
def test_a_header_that_lies_is_refused(entries, data_bytes, complaint):
    with pytest.raises(PomonaError, match=complaint) as caught:
        parse(file_bytes(entries, data_bytes))
    assert str(caught.value).startswith("The model file x.safetensors is damaged: ")


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"", "0 bytes"),
        (b"\0" * 7, "7 bytes"),
        (b"\0" * 8, "not what safetensors writes"),
        ((100).to_bytes(8, "little") + b"{}", "inside its header"),
        (b"\xff" * 8 + b"{}", "its header would have 18446744073709551615 bytes"),
        ((MAX_HEADER_BYTES + 1).to_bytes(8, "little"), "its header would have"),
        (b"\x80\x04\x95" + b"pickle" * 10, "its header would have"),
        ((2).to_bytes(8, "little") + b"\xff\xfe", "not what safetensors writes"),
        ((40_000).to_bytes(8, "little") + b"[" * 40_000, "not what safetensors writes"),
        ((40_005).to_bytes(8, "little") + b'{"a":' + b"[" * 40_000, "not what safetensors writes"),
    ],
)
def test_what_is_no_safetensors_file_is_refused(contents, complaint):
    with pytest.raises(PomonaError, match=complaint):
        parse(contents)


def test_a_name_given_twice_leaves_a_gap():
    one = '"t": {"dtype": "I8", "shape": [4], "data_offsets": [0, 4]}'
    other = one.replace("[0, 4]", "[4, 8]")
    text = f"{{{one}, {other}}}".encode()
    with pytest.raises(PomonaError, match="gap"):
        parse_header(text, 8 + len(text) + 8, "x.safetensors")


def test_an_empty_file_of_weights_is_allowed():
    assert parse(file_bytes({}, 0)) == {}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PomonaError, match=r"model\.safetensors is missing"):
        read_header(tmp_path / "model.safetensors")


def test_a_folder_in_place_of_a_file_is_missing(tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(PomonaError, match="is missing"):
        read_header(tmp_path / "model.safetensors")


def test_a_name_too_long_for_the_disk_is_a_sentence(tmp_path):
    with pytest.raises(PomonaError):
        read_header(tmp_path / ("x" * 5000))


def test_names_in_sentences_are_short_and_print():
    assert shown("a\n\x1b[31m") == r"'a\n\x1b[31m'"
    assert len(shown("x" * 10_000)) < 110


GOOD = file_bytes(header(SHAPES), 82)


@given(st.integers(0, len(GOOD) - 1))
def test_a_file_cut_anywhere_is_refused(length):
    with pytest.raises(PomonaError):
        parse(GOOD[:length])


@given(st.integers(0, len(GOOD) - 83), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(position, value):
    contents = bytearray(GOOD)
    contents[position] = value
    assert_consistent_or_refused(bytes(contents))


SIZES = st.integers(-1, 40) | st.sampled_from([2**31, 2**62, 2**63, 2**64, 10**30])
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["BF16", "U8", "F32", "F4", "F6_E2M3", "C64", "", "bf16"]) | st.text(max_size=5),
        "shape": st.lists(SIZES, max_size=4),
        "data_offsets": st.lists(SIZES, max_size=3),
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), ENTRIES, max_size=4), st.integers(0, 80))
@example({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, 2)
def test_overlapping_and_absurd_tensors_are_refused(entries, data_bytes):
    assert_consistent_or_refused(file_bytes(entries, data_bytes))


@given(JSON | st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.integers(0, 20))
def test_any_json_is_read_or_refused(entries, data_bytes):
    assert_consistent_or_refused(file_bytes(entries, data_bytes))


@given(st.binary(max_size=200))
def test_any_header_text_is_read_or_refused(text):
    assert_consistent_or_refused(len(text).to_bytes(8, "little") + text)


def assert_consistent_or_refused(contents: bytes) -> None:
    """Only :class:`PomonaError` may come out; what is read fills the file exactly."""
    refusal = None
    tensors: dict[str, TensorInfo] = {}
    try:
        tensors = parse(contents)
    except PomonaError as error:
        refusal = str(error)
    if refusal is None:
        length = int.from_bytes(contents[:8], "little")
        assert sum(tensor.byte_count for tensor in tensors.values()) == len(contents) - 8 - length
        assert set(tensors) == set(json.loads(contents[8 : 8 + length])) - {"__metadata__"}
    else:
        assert refusal.isprintable()
