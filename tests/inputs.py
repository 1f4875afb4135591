"""Inputs that nobody meant: good ones with something changed, and quite different ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTREMES: dict[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (-1, -7, 0, 1 << 31, 1 << 62, 10**30),
    float: (-1.0, 0.0, 1e308, -1e308),
    str: ("", "x" * 5000, "\0", "AAAA", "\u202e", "1\n2"),
    list: ([], ["a"] * 3, [-1, 31], [1 << 62]),
    type(None): (-1, 0, 1 << 40, 1e300, "x"),
}
"""Values of the right type, or near it, that no one would write."""


def values() -> st.SearchStrategy[Any]:
    """Anything that JSON can say."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800")
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    )


@st.composite
def changed(draw: st.DrawFn, good: bytes) -> bytes:
    """A good input with some of its bytes or values changed, or something quite different."""
    way = draw(st.sampled_from(("bytes", "value", "anything", "noise", "deep")))
    if way == "noise":
        return draw(st.binary(max_size=200))
    if way == "anything":
        return json.dumps(draw(values())).encode()
    if way == "deep":
        return draw(st.sampled_from((b"[", b'{"a":', b"\x91"))) * draw(st.sampled_from((10, 1000, 20_000)))
    if way == "value":
        try:
            tree = json.loads(good)
        except ValueError:
            way = "bytes"
        else:
            return json.dumps(_with_other_value(draw, tree)).encode()
    content = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=6))
    return bytes(content)


def _with_other_value(draw: st.DrawFn, tree: Any) -> Any:
    if isinstance(tree, dict) and tree and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(tree)))
        return {**tree, key: _with_other_value(draw, tree[key])}
    if isinstance(tree, list) and tree and draw(st.integers(0, 4)):
        index = draw(st.integers(0, len(tree) - 1))
        return [*tree[:index], _with_other_value(draw, tree[index]), *tree[index + 1 :]]
    return draw(values())


def with_extremes(tree: Any) -> Iterator[Any]:
    """The tree with one of its values after the other at each of its type's extremes."""
    yield from EXTREMES.get(type(tree), ())
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for place, part in inner:
        for changed_part in with_extremes(part):
            other = tree.copy()
            other[place] = changed_part
            yield other
