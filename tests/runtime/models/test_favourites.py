"""Favourites are kept in a file, in order, for their person alone."""

from __future__ import annotations

import stat

import pytest

from runtime.errors import PomonaError
from runtime.models.favourites import FILE_NAME, MAX_FAVOURITES, Favourites


def test_they_are_kept_in_the_order_in_which_they_came(tmp_path):
    for name in ("someone/A", "someone/B", "someone/A"):
        Favourites(tmp_path).add(name)
    assert Favourites(tmp_path).all() == ("someone/B", "someone/A")
    Favourites(tmp_path).remove("someone/B")
    assert Favourites(tmp_path).all() == ("someone/A",)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_what_is_none_cannot_be_removed_and_no_name_is_none(tmp_path):
    with pytest.raises(PomonaError, match="someone/A is no favourite"):
        Favourites(tmp_path).remove("someone/A")
    with pytest.raises(PomonaError, match="1 to 400 letters, not 0"):
        Favourites(tmp_path).add("")


def test_the_oldest_goes_when_there_are_too_many(tmp_path, monkeypatch):
    favourites = Favourites(tmp_path)
    for number in range(MAX_FAVOURITES + 2):
        favourites.add(f"someone/{number}")
    assert len(favourites.all()) == MAX_FAVOURITES
    assert favourites.all()[0] == "someone/2"


def test_a_damaged_file_is_set_aside(tmp_path):
    (tmp_path / FILE_NAME).write_text("{nonsense")
    assert Favourites(tmp_path).all() == ()
    assert (tmp_path / "favourites.damaged.json").read_text() == "{nonsense"
