"""Variables of a person's environment that change what MLX does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FAST_SYNCH_VARIABLE = "MLX_METAL_FAST_SYNCH"


def fast_synch_warning(environment: Mapping[str, str]) -> str:
    """One sentence if the variable is set, which Pomona never does itself; empty otherwise.

    With it a pipeline can lock the GPU until the Mac is started again (mlx issues 3830 and 3142).
    """
    if environment.get(FAST_SYNCH_VARIABLE, "0") in ("", "0"):
        return ""
    return f"{FAST_SYNCH_VARIABLE} is set; with it a model over several Macs can lock the GPU until a restart."
