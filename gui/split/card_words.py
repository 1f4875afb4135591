"""What one node's card says: of a split that is planned, of a model that loads, runs, changes or was lost. No Qt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gui.formatting import (
    and_words,
    bytes_words,
    count_words,
    in_unit_words,
    layers_words,
    missing_bytes_words,
    round_bytes_words,
    split_bytes,
)
from gui.preview import Fit
from gui.session import Phase, SessionState
from gui.split.card import CardView, Glyph, Tone
from gui.split.card_bar import planned_bar, running_bar
from gui.split.loading_words import fetching_card, loading_card
from gui.split.node_words import chip_words, layers_held, node_tooltip
from resources.sleep import slept_words

if TYPE_CHECKING:
    from gui.preview import Share
    from runtime.cluster.messages import Failed, RankHeld

_NOTICED_SECONDS = 5.0
"""By so much the clocks of two machines may differ."""


def card_view(share: Share, session: SessionState, *, tensor: bool = False) -> CardView:
    """One card: what a node would hold, has loaded, or holds."""
    node = share.node
    progress, held = session.progress_of(node.node_id), session.held_by(node.node_id)
    stopping = session.phase is Phase.STOPPING
    if session.change is not None and session.change.is_loss and session.change.node_id == node.node_id:
        card = _lost_card(share, session.change.reason, "Lost, going on without")
    elif node.node_id in session.lost:
        card = _lost_card(share, "The session goes on without this node.", "Lost, the session goes on")
    elif session.phase is not Phase.STOPPING and (fetch := session.fetch_of(node.node_id)) is not None:
        card = fetching_card(share, fetch)
    elif session.change is not None and progress is not None:
        card = loading_card(share, progress, stopping=stopping)
    elif session.can_change and _layers(held) != _layers_of(share):
        card = _edited_card(share, held)
    elif session.phase in {Phase.RUNNING, Phase.STOPPING} and held is not None:
        card = _running_card(share, held, stopping=stopping)
    elif session.phase in {Phase.LOADING, Phase.STOPPING} and _takes_part(share, session):
        card = loading_card(share, progress, stopping=stopping)
    elif session.failure is not None and session.failure.node_id == node.node_id:
        card = _failed_card(share, session.failure)
    else:
        card = _waiting_card(share, tensor=tensor)
    return card


def _takes_part(share: Share, session: SessionState) -> bool:
    stages = session.plan.stages if session.plan else ()
    return any(rank.node_id == share.node.node_id for stage in stages for rank in stage.ranks)


def _waiting_card(share: Share, *, tensor: bool) -> CardView:
    node, fit = share.node, share.fit
    number, unit = split_bytes(share.needed_bytes)
    free = round_bytes_words(node.memory_available_bytes)
    figure = (number, f"{unit} of {free} free", unit)
    if fit is Fit.UNKNOWN:
        number, unit = free.split()
        figure = (number, f"{unit} free", unit)
    words, short, glyph, tone = _fit_words(share)
    bar = planned_bar(share)
    sums = [in_unit_words(count, unit) for count in (share.weight_bytes, share.kv_bytes, share.reserve_bytes)]
    parts = (
        f"{bytes_words(share.weight_bytes)} weights · {bytes_words(share.kv_bytes)} cache · "
        f"{bytes_words(share.reserve_bytes)} reserve"
    )
    if fit is Fit.LEFT_OUT:
        detail = "Holds no layer, so it takes no part. Drag a boundary to give it some."
    elif fit is Fit.UNKNOWN:
        detail = words
    else:
        span = _span(share, tensor=tensor)
        detail = f"{span[:1].upper()}{span[1:]}: {number} {unit} ({parts}). {words}"
    return CardView(
        node_id=node.node_id,
        name=node.name,
        chip=chip_words(share),
        layers=layers_held(share, tensor=tensor),
        number=figure[0],
        unit=figure[1],
        short_unit=figure[2],
        words=words,
        short_words=short,
        glyph=glyph,
        tone=tone,
        used=bar.used,
        own=bar.own,
        beside=bar.beside,
        bound=bar.bound,
        detail=f"{sums[0]} weights + {sums[1]} cache + {sums[2]} reserve" if share.weight_bytes else "",
        short_detail=" + ".join(sums) if share.weight_bytes else "",
        limit=bar.limit,
        outlined=fit is Fit.OVER,
        hatched=fit is Fit.OVER,
        faded=fit is Fit.LEFT_OUT,
        tooltip=f"{node_tooltip(share)}\n{detail}",
    )


def _fit_words(share: Share) -> tuple[str, str, Glyph, Tone]:
    """What a card's line says of how a share fits, in full and in short, and how it looks."""
    match share.fit:
        case Fit.FITS:
            return f"Fits · {_spare_words(share)} spare", "Fits", Glyph.CHECK, Tone.GOOD
        case Fit.TIGHT:
            return f"Tight · {_spare_words(share)} spare", "Tight", Glyph.BANG, Tone.WARN
        case Fit.OVER:
            missing = missing_bytes_words(share.missing_bytes)
            return f"Needs {missing} more", f"Needs {missing}", Glyph.CROSS, Tone.BAD
        case Fit.LEFT_OUT:
            return "Left out", "Left out", Glyph.DASH, Tone.DIM
        case Fit.UNKNOWN:
            return "Cannot take a share", "No share", Glyph.CROSS, Tone.BAD


def _spare_words(share: Share) -> str:
    return bytes_words(max(share.node.memory_available_bytes - share.needed_bytes, 0))


def _span(share: Share, *, tensor: bool) -> str:
    if tensor:
        return "its part of every layer"
    layers = layers_words(share.first_layer, share.last_layer)
    others = [name for name in share.group if name != share.node.name]
    return f"its part of {layers}, shared with {and_words(others)}" if others else layers


def _running_card(share: Share, held: RankHeld, *, stopping: bool) -> CardView:
    node = share.node
    number, unit = split_bytes(held.held_bytes)
    words = "Stopping" if stopping else f"Running · {layers_words(held.first_layer, held.last_layer)}"
    bar = running_bar(share, held)
    return CardView(
        node_id=node.node_id,
        name=node.name,
        chip=chip_words(share),
        layers=count_words(held.last_layer - held.first_layer + 1, "layer"),
        number=number,
        unit=f"{unit} held",
        short_unit=f"{unit} held",
        words=words,
        short_words="Stopping" if stopping else layers_words(held.first_layer, held.last_layer).capitalize(),
        glyph=Glyph.DOTS if stopping else Glyph.PLAY,
        tone=Tone.BUSY if stopping else Tone.GOOD,
        used=bar.used,
        own=bar.own,
        beside=bar.beside,
        bound=bar.bound,
        detail=f"{bytes_words(held.planned_bytes)} planned · room for {bytes_words(share.kv_bytes)} cache",
        short_detail=f"{bytes_words(held.planned_bytes)} planned",
        tooltip=(
            f"{node_tooltip(share)}\n{layers_words(held.first_layer, held.last_layer).capitalize()}: "
            f"{bytes_words(held.held_bytes)} held, {bytes_words(held.planned_bytes)} planned"
        ),
    )


def _layers(held: RankHeld | None) -> tuple[int, int] | None:
    return (held.first_layer, held.last_layer) if held is not None else None


def _layers_of(share: Share) -> tuple[int, int] | None:
    return (share.first_layer, share.last_layer) if share.layer_count else None


def _edited_card(share: Share, held: RankHeld | None) -> CardView:
    """What a node would hold after a change that was not applied yet."""
    card = _waiting_card(share, tensor=False)
    before = held.last_layer - held.first_layer + 1 if held is not None else 0
    words = f"{card.words} · now {layers_words(*now)}" if (now := _layers(held)) else f"{card.words} · now none"
    return replace(
        card,
        layers=f"{before} → {count_words(share.layer_count, 'layer')}",
        words=words,
        faded=False,
        tooltip=f"{card.tooltip}\nIt holds {layers_words(*now) if now else 'no layers'} until this is applied.",
    )


def _lost_card(share: Share, reason: str, words: str) -> CardView:
    return replace(
        _waiting_card(share, tensor=False),
        layers="no layers",
        number="–",
        unit="not reached",
        short_unit="not reached",
        used=0.0,
        own=0.0,
        beside=0.0,
        limit=None,
        words=words,
        short_words="Lost",
        glyph=Glyph.CROSS,
        tone=Tone.BAD,
        detail="",
        short_detail="",
        outlined=True,
        hatched=False,
        faded=True,
        tooltip=f"{node_tooltip(share)}\n{reason}",
    )


def _failed_card(share: Share, failure: Failed) -> CardView:
    sleep = share.node.last_sleep
    slept = sleep is not None and sleep.began_at - _NOTICED_SECONDS < failure.at < sleep.began_at + sleep.seconds
    words = slept_words(sleep).capitalize() if sleep is not None and slept else "The last run failed here"
    return replace(
        _waiting_card(share, tensor=False),
        words=words,
        short_words="Slept" if slept else "Failed here",
        glyph=Glyph.CROSS,
        tone=Tone.BAD,
        outlined=True,
        tooltip=f"{node_tooltip(share)}\n{failure.reason}",
    )
