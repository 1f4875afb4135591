"""A note is there while its process says so, and goes without taking another's with it."""

from __future__ import annotations

import msgspec

from runtime.note_file import NoteFile


class Note(msgspec.Struct, frozen=True):
    pid: int


FILE = NoteFile("note.json", Note, limit_bytes=64)


def test_a_note_is_there_as_long_as_it_is_left(tmp_path):
    assert FILE.read(tmp_path) is None
    with FILE.left(tmp_path, Note(1)):
        assert FILE.read(tmp_path) == Note(1)
        assert (tmp_path / FILE.name).stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_another_has_left_since_stays(tmp_path):
    with FILE.left(tmp_path, Note(2)):
        with FILE.left(tmp_path, Note(1)):
            (tmp_path / FILE.name).write_bytes(msgspec.json.encode(Note(2)))
        assert FILE.read(tmp_path) == Note(2)


def test_what_is_no_note_is_none(tmp_path):
    for content in (b"", b"{", b"[" * 60, b'{"pid": "1"}', b'{"pid": 1}' + b" " * 64):
        (tmp_path / FILE.name).write_bytes(content)
        assert FILE.read(tmp_path) is None
