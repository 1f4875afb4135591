"""A model with random weights from a ``config.json`` alone, to check how its architecture splits.

    python -m runtime.engine.random_model CONFIG FOLDER

Weights are float32, the dtype that every operation of MLX knows on every device; a ``quantization`` in the
configuration is obeyed.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map_with_path

from runtime.engine import lifeline
from runtime.engine.without_text import import_mlx_lm
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEED = 0
_NOISE = 0.1
_KEPT = ("signs",)
"""Parameters that must stay what they are: +1 and -1."""


def random_model(config: dict[str, Any]) -> nn.Module:
    """The model. No parameter stays at a value like 0 or 1 that would hide a mistake.

    Raises :class:`PomonaError` if it would take a quarter of this machine's memory.
    """
    from mlx_lm.utils import _get_classes  # may be a stand-in without its text half

    mx.random.seed(_SEED)
    model_class, arguments_class = _get_classes(config)
    model: nn.Module = model_class(arguments_class.from_dict(copy.deepcopy(config)))
    flat: Any = tree_flatten(model.parameters())
    size_bytes = 4 * sum(array.size for _path, array in flat)
    if size_bytes > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4:
        raise PomonaError(
            f"random weights would take {size_bytes / 2**30:.0f} GB, too much for this machine: "
            "check a configuration with fewer and smaller layers"
        )
    model.update(tree_map_with_path(_shaken, model.parameters()))
    if "quantization" in config and config.get("schema_version") is None:  # a schema: packed by the model itself
        _quantize(model, config["quantization"])
    model.eval()
    return model


def save_random_model(config: dict[str, Any], folder: Path) -> None:
    """Write it as mlx-lm does."""
    from mlx_lm.utils import save_config, save_model  # may be a stand-in without its text half

    save_model(folder, random_model(config))
    save_config(copy.deepcopy(config), folder / "config.json", keep_vision_config=True)


def _shaken(path: str, array: mx.array) -> mx.array:
    if not mx.issubdtype(array.dtype, mx.floating) or path.endswith(_KEPT):
        return array
    array = array.astype(mx.float32)
    is_constant: Any = (array == array.reshape(-1)[0]).all().item()
    return array + _NOISE * mx.random.normal(array.shape) if array.ndim <= 1 or is_constant else array


def _quantize(model: nn.Module, quantization: dict[str, Any]) -> None:
    """As the configuration says: one setting for all, and modules with settings of their own."""
    group_size, bits = quantization["group_size"], quantization["bits"]

    def settings_of(path: str, module: nn.Module) -> Any:
        if path in quantization:
            return quantization[path]
        return hasattr(module, "to_quantized") and module.weight.shape[-1] % group_size == 0

    nn.quantize(model, group_size, bits, class_predicate=settings_of)


def main(arguments: Sequence[str]) -> int:
    """The command line. What went wrong is one sentence on standard error."""
    source, folder = map(Path, arguments)
    lifeline.die_with_parent(os.getppid())
    import_mlx_lm()
    try:
        save_random_model(json.loads(source.read_bytes()), folder)
    except PomonaError as error:
        sys.stderr.write(f"{source.name} makes no model: {error}.\n")
        return 1
    except Exception as error:  # noqa: BLE001  whatever a model's code raises for a configuration it does not like
        sys.stderr.write(f"mlx-lm makes no model of {source.name} ({type(error).__name__}: {error}).\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
