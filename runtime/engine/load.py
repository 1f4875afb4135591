"""From a model folder to a stage that is ready to run."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import mlx.core as mx
from mlx_lm.utils import load_model

from runtime.engine.stage import Stage
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

    import mlx.nn as nn


def build_stage(folder: Path, first_layer: int, end_layer: int, group: mx.distributed.Group | None) -> Stage:
    """The stage's layers, lazily: no weight is read yet. ``group`` shares each layer among the ranks of a tensor group.

    Raises :class:`PomonaError` if the folder does not hold every weight that the model needs, or mlx-lm cannot load it.
    """
    model = _lazy_model(folder)
    if group is not None and group.size() > 1:
        if not hasattr(model, "shard"):
            raise PomonaError(f"The layers of {folder.name} cannot be shared in tensor mode; use pipeline mode.")
        model.shard(group)
    return Stage(model, first_layer, end_layer)


def held_bytes() -> int:
    """What MLX has allocated in this process and still holds, after letting go of everything unused."""
    gc.collect()
    mx.clear_cache()
    return mx.get_active_memory()


def _lazy_model(folder: Path) -> nn.Module:
    try:
        model, _config = load_model(folder, lazy=True, strict=True)
    except FileNotFoundError as error:
        raise PomonaError(
            f"The model folder {folder} has no weights, or no config.json; fetch the model again."
        ) from error
    except (
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
    ) as error:  # what mlx-lm raises for a model that it cannot read
        raise PomonaError(f"The model in {folder} cannot be loaded: {_first_line(error)}") from error
    return model


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
