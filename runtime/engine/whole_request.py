"""What the whole model in a process of its own is asked; apart from it, because asking needs no mlx."""

from __future__ import annotations

import msgspec


class WholeRequest(msgspec.Struct, frozen=True):
    """A prompt and what came after it."""

    model_folder: str
    chunks: tuple[tuple[int, ...], ...]
    """The prompt in steps. Matrices of other sizes are rounded otherwise, so these must be the split's."""
    decoded: tuple[int, ...]
    """The tokens that go in after the prompt, one by one: those that the split chose."""
    rounded: bool = False
    """Also report how far rounding alone moves the logits: those of weights that are moved by half a unit."""
