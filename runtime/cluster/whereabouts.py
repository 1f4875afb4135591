"""Where nodes may be, by who says so: mDNS, this machine's trust, or an address that a person typed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discovery.address import HostPort

_MAX_PLACES = 8


class Whereabouts:
    """What each source says of each node. None of it is more than a place worth asking at."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, tuple[HostPort, ...]]] = {}
        """Places by source, for each node."""

    def say(self, node_id: str, source: str, places: tuple[HostPort, ...]) -> bool:
        """Take the places that one source has for a node now; returns whether that is news."""
        sources = self._said.setdefault(node_id, {})
        is_news = sources.get(source, ()) != places
        if is_news:
            sources[source] = places
        if not any(sources.values()):
            del self._said[node_id]
        return is_news

    def of(self, node_id: str) -> list[HostPort]:
        """The places to ask at, each once, and not more than a few."""
        said = self._said.get(node_id, {}).values()
        return list(dict.fromkeys(place for places in said for place in places))[:_MAX_PLACES]

    def named_by(self, source: str) -> list[str]:
        """The nodes that this source has places for."""
        return [node_id for node_id, sources in self._said.items() if sources.get(source)]

    def clear(self) -> None:
        """Forget all."""
        self._said.clear()
