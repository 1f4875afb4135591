"""The cards of nodes that load, or fetch what they have to load. No Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.formatting import bytes_words, seconds_words, split_bytes
from gui.split.card import CardView, Glyph, Tone
from gui.split.node_words import chip_words, layers_held, node_tooltip

if TYPE_CHECKING:
    from gui.preview import Share
    from runtime.cluster.messages import LoadProgress, ModelFetch

_PHASE_WORDS = {
    "starting": "Starting a worker",
    "connecting": "Connecting",
    "loading": "Loading",
    "warming up": "Warming up",
    "ready": "Ready, waits for the others",
}


def loading_card(share: Share, progress: LoadProgress | None, *, stopping: bool) -> CardView:
    """How far its worker is."""
    phase = progress.phase if progress else "starting"
    loaded = progress.loaded_bytes if progress else 0
    total = progress.total_bytes if progress else share.weight_bytes
    words = "Stopping" if stopping else _PHASE_WORDS[phase]
    fraction = min(loaded / total, 1.0) if total else float(phase == "ready")
    short = words
    if phase == "loading" and not stopping:
        words = short = f"{words} · {fraction:.0%}"
    if phase == "warming up" and loaded < total and not stopping:
        words = short = "Reading the rest, warming up"  # embedding and head are read when they are first used
    rate, left = "", ""
    if progress is not None and not stopping:
        rate, left = _pace_words(progress.bytes_per_second, progress.seconds_left)
    number, unit = split_bytes(loaded)
    ready = phase == "ready" and not stopping
    return CardView(
        node_id=share.node.node_id,
        name=share.node.name,
        chip=chip_words(share),
        layers=layers_held(share, tensor=False),
        number=number,
        unit=f"{unit} of {bytes_words(total)} loaded",
        short_unit=f"{unit} loaded",
        words=f"{words} · {left}" if left else words,
        short_words="Ready" if ready else short,
        glyph=Glyph.CHECK if ready else Glyph.DOTS,
        tone=Tone.GOOD if ready else Tone.BUSY,
        own=fraction,
        detail=rate,
        short_detail=rate,
        tooltip=f"{node_tooltip(share)}\n{words}: {bytes_words(loaded)} of {bytes_words(total)} {rate}".rstrip(),
    )


def fetching_card(share: Share, fetch: ModelFetch) -> CardView:
    """A node that gets what its layers need, from other nodes or the hub."""
    number, unit = split_bytes(fetch.done_bytes)
    total = bytes_words(fetch.total_bytes)
    fraction = min(fetch.done_bytes / fetch.total_bytes, 1.0)
    words = f"Fetching · {fraction:.0%}"
    rate, left = _pace_words(fetch.bytes_per_second, fetch.seconds_left)
    return CardView(
        node_id=share.node.node_id,
        name=share.node.name,
        chip=chip_words(share),
        layers=layers_held(share, tensor=False),
        number=number,
        unit=f"{unit} of {total} fetched",
        short_unit=f"{unit} fetched",
        words=f"{words} · {left}" if left else words,
        short_words=words,
        glyph=Glyph.DOTS,
        tone=Tone.BUSY,
        own=fraction,
        detail=rate,
        short_detail=rate,
        tooltip=f"{node_tooltip(share)}\n{fetch.words or words}: {number} {unit} of {total} {rate}",
    )


def _pace_words(bytes_per_second: float, seconds_left: float | None) -> tuple[str, str]:
    """How fast, and how long it takes yet; empty where that is not known."""
    rate = f"{bytes_words(round(bytes_per_second))}/s" if bytes_per_second > 0 else ""
    return rate, f"{seconds_words(seconds_left)} left" if seconds_left is not None else ""
