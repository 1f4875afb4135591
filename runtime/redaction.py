"""Takes names and addresses out of a text that is to be shown to strangers. Pure.

The same thing is called the same wherever it stands, so that the text can still be followed.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NODE_ID = re.compile(r"\b[0-9a-f]{32,64}\b")
_MAC = re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE)
_IPV4, _IPV6 = r"\d{1,3}(?:\.\d{1,3}){3}(?!\w)", r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:%\w+)?(?![\w:])"
_ADDRESS = re.compile(rf"(?<![\w.:])(?:{_IPV4}|{_IPV6})", re.IGNORECASE)
_HOME = re.compile(r"(/Users|/home)/[^/\s'\"]+")
_HOST = re.compile(r"\b[\w-]+\.local\b")


class Redaction:
    """Replaces the ``names`` of nodes, and whatever looks like an address, an id or a person's folder."""

    def __init__(self, names: Iterable[str]) -> None:
        ordered = sorted(dict.fromkeys(filter(None, names)), key=len, reverse=True)  # a name may contain another
        self._names = {name: f"node {number}" for number, name in enumerate(ordered, start=1)}
        self._seen: dict[tuple[str, str], str] = {}

    def __call__(self, text: str) -> str:
        """``text`` without what it names."""
        for name, word in self._names.items():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
        text = _HOME.sub(r"\1/person", text)
        text = _MAC.sub(lambda found: self._called("hardware", found[0].lower()), text)
        text = _ADDRESS.sub(self._address, text)
        text = _NODE_ID.sub(lambda found: self._called("id", found[0]), text)
        return _HOST.sub(lambda found: self._called("host", found[0]), text)

    def _address(self, found: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(found[0].partition("%")[0])
        except ValueError:  # a time, or a version
            return found[0]
        return found[0] if address.is_loopback or address.is_unspecified else self._called("address", str(address))

    def _called(self, kind: str, what: str) -> str:
        number = 1 + sum(other == kind for other, _ in self._seen)
        return self._seen.setdefault((kind, what), f"<{kind} {number}>")
