"""Which models can decode several sequences in one step.

mlx-lm pads shorter sequences on the left. Some of its models do not know of that padding: with two requests at once
they fail, or write other text than for each alone. All found by ``tests/matrix/test_batches.py``, with mlx-lm 0.32.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.nn as nn

ALONE = {
    "afm7": "layers without keys of their own count positions from the padded length",
    "gemma2": "the mask has no place for grouped heads",
    "gpt_bigcode": "positions are one range for all rows",
    "minimax_m3_vl": "blocks of sparse attention are cut through padding",
    "phi3small": "the mask has no place for grouped heads",
    "plamo3": "the mask looks one token further back than the sliding-window cache",
}
"""Models that decode one sequence at a time, by their module in mlx-lm, and why."""


def knows_padding(layer: nn.Module) -> bool:
    """Whether a model with such layers computes the same in a batch as alone."""
    return type(layer).__module__.rpartition(".")[2] not in ALONE
