"""A node's card as a frozen value, ready to paint. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Tone(Enum):
    """The colour of a card's line of words; its glyph says the same without colour."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    DIM = "dim"
    BUSY = "busy"


class Glyph(Enum):
    """The mark before a card's line of words."""

    CHECK = "check"
    BANG = "bang"
    CROSS = "cross"
    DASH = "dash"
    DOTS = "dots"
    PLAY = "play"


@dataclass(frozen=True, slots=True)
class CardView:
    """One node's card, ready to paint. The bar's parts are fractions of its length."""

    node_id: str
    name: str
    chip: str
    layers: str
    number: str
    """The large figure."""
    unit: str
    """What follows it, small."""
    short_unit: str
    """The same for a card that has no room."""
    words: str
    short_words: str
    glyph: Glyph
    tone: Tone
    used: float = 0.0
    """Memory that other programs hold."""
    own: float = 0.0
    """What the model's weights take, or what of them is loaded."""
    beside: float = 0.0
    """What its cache and the reserve take."""
    bound: float | None = None
    """Where the part ends that models may have: the GPU's limit, or the person's."""
    detail: str = ""
    """How the large figure comes about, in its unit."""
    short_detail: str = ""
    limit: float | None = None
    """Where memory ends, when the bar goes past it."""
    outlined: bool = False
    """Something is wrong with this node."""
    hatched: bool = False
    """Its layers do not fit."""
    faded: bool = False
    link: str = ""
    """The way to the next node: ``→ Mac mini: Thunderbolt · 0.4 ms · 3.1 GB/s``."""
    is_first: bool = False
    is_last: bool = False
    is_out: bool = False
    """It takes no part."""
    in_group: bool = False
    """It shares the layers of its stage with other nodes."""
    leader: int | None = None
    """Which card's layers it shares, if the split gives them to another one."""
    needed_words: str = ""
    """Why it cannot be left out."""
    locked: str = ""
    """Why it cannot be moved or left out now."""
    hue: int = 0
    """Which of the theme's hues its node has, wherever it stands."""
    tooltip: str = ""
