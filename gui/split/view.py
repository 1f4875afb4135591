"""What the split editor paints, as frozen values with every word in place. No Qt: the texts are tested as texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from gui.session import Phase
from gui.split.card_words import card_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gui.preview import Preview
    from gui.session import SessionState
    from gui.split.card import CardView
    from gui.split.kinds import Kind
    from runtime.cluster.links import NodePair

LOCKED_LOADING = "Cancel to move boundaries"
LOCKED_CHANGING = "Wait until the split has changed"
LOCKED_STOPPING = "Wait until the session has stopped"
LOCKED_TENSOR = "Every node shares every layer"


@dataclass(frozen=True, slots=True)
class EditorView:
    """Everything that the split editor shows."""

    layer_count: int = 0
    counts: tuple[int, ...] = ()
    kinds: tuple[Kind, ...] = ()
    """Of each layer; empty while all are alike."""
    tensor: bool = False
    cards: tuple[CardView, ...] = ()
    locked: str | None = None
    """Why boundaries cannot be moved."""

    @property
    def has_links(self) -> bool:
        return any(card.link for card in self.cards)


def editor_view(
    preview: Preview,
    session: SessionState,
    layer_count: int,
    links: Sequence[NodePair] = (),
    hues: Mapping[str, int] | None = None,
) -> EditorView:
    """The editor for a split and the state of the session."""
    tensor = preview.mode == "tensor"
    locked = locked_words(session) or (LOCKED_TENSOR if tensor else None)
    counts = tuple(share.own_count if not tensor else share.layer_count for share in preview.shares)
    return EditorView(
        layer_count=layer_count,
        counts=counts,
        tensor=tensor,
        cards=_cards(preview, session, links, hues or {}, locked or "", tensor=tensor),
        locked=locked,
    )


def _cards(
    preview: Preview,
    session: SessionState,
    links: Sequence[NodePair],
    hues: Mapping[str, int],
    locked: str,
    *,
    tensor: bool,
) -> tuple[CardView, ...]:
    """One for each node, with the way to the next one that takes part."""
    shares = preview.shares
    part = [share.node for share in shares if share.layer_count or tensor]
    following = {node.node_id: after for node, after in pairwise(part)}
    places = {share.node.node_id: place for place, share in enumerate(shares)}
    cards = []
    for index, share in enumerate(shares):
        card = card_view(share, session, tensor=tensor)
        after = following.get(share.node.node_id)
        cards.append(
            replace(
                card,
                hue=hues.get(share.node.node_id, index),
                link=link_words(links, share.node.node_id, after.node_id, after.name) if after is not None else "",
                is_first=index == 0,
                is_last=index == len(shares) - 1,
                in_group=bool(share.group) and not tensor,
                leader=places.get(share.leader_id) if not tensor else None,
                is_out=not share.layer_count and not tensor,
                needed_words="A model needs one node at least" if len(part) < 2 and share.layer_count else "",
                locked=locked,
            )
        )
    return tuple(cards)


def link_words(links: Sequence[NodePair], one: str, other: str, name: str) -> str:
    """``→ Mac mini: Thunderbolt · 0.4 ms · 3.1 GB/s``; empty if nothing is known of the way."""
    pair = next((pair for pair in links if set(pair.node_ids) == {one, other}), None)
    if pair is None:
        return ""
    link = pair.chosen
    if link is None:
        return f"→ {name}: no link"
    rate = link.bytes_per_second / 1e9
    speed = f"{rate:.1f} GB/s" if rate >= 0.1 else f"{rate * 1000:.0f} MB/s"
    return f"→ {name}: {link.name} · {link.rtt_seconds * 1000:.1f} ms · {speed}"


def locked_words(session: SessionState) -> str | None:
    """Why a session keeps the boundaries where they are, and what would free them; None while they can be moved."""
    if session.phase is Phase.IDLE or session.can_change:
        return None
    if session.phase is Phase.RUNNING:
        return LOCKED_CHANGING if session.change is not None else LOCKED_TENSOR
    return LOCKED_LOADING if session.phase is Phase.LOADING else LOCKED_STOPPING
