"""Stop strings in text that comes in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.server.stops import StopStrings

letters = st.text("ab", max_size=12)


@given(pieces=st.lists(letters), stops=st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_pieces_say_what_the_whole_text_says_up_to_the_first_stop(pieces, stops):
    text = "".join(pieces)
    ends = [text.find(stop) for stop in stops if stop in text]
    strings = StopStrings(stops)
    shown = "".join(strings.add(piece) for piece in pieces)
    assert (strings.found is None) == (not ends)
    if strings.found is None:
        assert shown + strings.finish() == text
    else:
        # A stop that is complete earlier wins, though a longer one may have begun before it.
        assert text.startswith(shown + strings.found)
        assert len(shown) >= min(ends)


def test_what_may_become_a_stop_is_held_back():
    strings = StopStrings(["stop"])
    assert [strings.add(piece) for piece in ("a st", "o", "re", " st", "op!", "more")] == [
        "a ",
        "",
        "store",
        " ",
        "",
        "",
    ]
    assert strings.found == "stop"
