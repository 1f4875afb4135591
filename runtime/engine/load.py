"""From a model folder to a stage that is ready to run."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx_lm.utils import _get_classes, load_model

from runtime.engine.absent_tensors import absent_tensors
from runtime.engine.stage import Stage
from runtime.engine.tensor_parallel import shard
from runtime.engine.weight_check import check_weights
from runtime.errors import PomonaError
from runtime.models.folder_names import model_name
from runtime.models.tensor_mode.refusal import tensor_refusal

if TYPE_CHECKING:
    from pathlib import Path

    import mlx.nn as nn


def build_stage(
    folder: Path,
    first_layer: int,
    end_layer: int,
    group: mx.distributed.Group | None,
    previous: Stage | None = None,
    kv_bits: int = 0,
) -> Stage:
    """The stage's layers, lazily: no weight is read yet. ``group`` shares each layer among the ranks of a tensor group.

    What ``previous``, a stage of the same model, has in memory and this one needs is taken over from it.

    Raises :class:`PomonaError` if the folder does not hold every weight that the stage needs, or mlx-lm cannot load it.
    """
    model, config = _lazy_model(folder, first_layer, end_layer)
    if group is not None and group.size() > 1:
        # Asked again, because mlx-lm has now put into the config what else it found of how the weights are quantized.
        if refusal := tensor_refusal(config, group.size(), model_name(folder)):
            raise PomonaError(refusal)
        try:
            shard(model, group)
        except (ValueError, TypeError, AttributeError, AssertionError) as error:  # no model that is known does this
            raise PomonaError(
                f"The layers of {model_name(folder)} cannot be shared by {group.size()} nodes: {_first_line(error)}. "
                "Use pipeline mode."
            ) from error
    if previous is not None:
        previous.hand_over_to(model, first_layer, end_layer)
    return Stage(model, first_layer, end_layer, kv_bits)


def held_bytes() -> int:
    """What MLX has allocated in this process and still holds, after letting go of everything unused."""
    gc.collect()
    mx.synchronize()
    mx.clear_cache()
    return mx.get_active_memory()


def _lazy_model(folder: Path, first_layer: int, end_layer: int) -> tuple[nn.Module, dict[str, Any]]:
    stand_ins = absent_tensors(folder, first_layer, end_layer)

    def classes(config: dict[str, Any]) -> tuple[type[nn.Module], type]:
        model_class, arguments_class = _get_classes(config)

        def load_weights(self: nn.Module, weights: list[tuple[str, mx.array]], **_strict: bool) -> nn.Module:
            check_weights(self, dict(weights), first_layer, end_layer, model_name(folder))
            loaded: nn.Module = model_class.load_weights(self, weights, strict=False)
            return loaded

        def sanitize(self: nn.Module, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            sanitized: dict[str, mx.array] = model_class.sanitize(self, {**stand_ins, **weights})
            return sanitized

        methods: dict[str, Any] = {"load_weights": load_weights, "__module__": model_class.__module__}
        if stand_ins and hasattr(model_class, "sanitize"):
            methods["sanitize"] = sanitize
        checked = type(model_class.__name__, (model_class,), methods)
        return checked, arguments_class

    try:
        model, config = load_model(folder, lazy=True, get_model_classes=classes)
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
    return model, config


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
