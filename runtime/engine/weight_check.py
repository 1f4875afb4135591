"""Whether a model's files hold what a stage needs: asked by their headers, before a weight is read.

mlx-lm asks for every tensor of the model, or for none: then what is missing stays random and becomes text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlx.utils import tree_flatten

from runtime.errors import PomonaError
from runtime.models.tensor_names import part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import mlx.core as mx
    import mlx.nn as nn

_NAMED = 3
"""Of tensors that are missing, so many are named."""


def check_weights(
    model: nn.Module, weights: Mapping[str, mx.array], first_layer: int, end_layer: int, name: str
) -> None:
    """Raise :class:`PomonaError` if ``weights`` lack what layers ``[first_layer, end_layer)`` need, or do not fit.

    Tensors of other stages' layers may be missing: a node need not have them. ``name`` is the model's.
    """
    flat: Any = tree_flatten(model.parameters())
    parameters: dict[str, mx.array] = dict(flat)
    if unknown := sorted(weights.keys() - parameters.keys()):
        raise PomonaError(f"The files of {name} hold tensors that mlx-lm has no place for: {_named(unknown)}.")
    needed = list(_needed(model, parameters, first_layer, end_layer))
    if missing := [path for path in needed if path not in weights]:
        raise PomonaError(
            f"The files of {name} lack {_named(missing)}, which layers {first_layer} to {end_layer - 1} need: "
            "fetch the model again."
        )
    if wrong := [path for path in needed if weights[path].shape != parameters[path].shape]:
        raise PomonaError(
            f"The files of {name} hold tensors of other shapes than its config.json asks for: {_named(wrong)}. "
            "Fetch the model again."
        )


def _needed(model: nn.Module, parameters: Mapping[str, mx.array], first_layer: int, end_layer: int) -> Iterator[str]:
    """The parameters of the stage's layers, and of those outside of layers the first stage's and the last one's."""
    places = {id(layer): index for index, layer in enumerate(model.layers)}
    prefixes = {f"{path}.": places[id(module)] for path, module in model.named_modules() if id(module) in places}
    owners = {path: _owner(path, prefixes) for path in parameters}
    is_first, is_last = first_layer == 0, end_layer == len(places)
    parts = {path: part_of(path) for path, owner in owners.items() if owner is None}
    is_tied = "head" not in parts.values()
    for path, owner in owners.items():
        if owner is not None:
            is_needed = first_layer <= owner < end_layer
        elif parts[path] == "embedding":
            is_needed = is_first or (is_last and is_tied)
        elif parts[path] == "beside embedding":
            is_needed = is_first
        else:
            is_needed = is_last and parts[path] != "left out"
        if is_needed:
            yield path


def _owner(path: str, prefixes: Mapping[str, int]) -> int | None:
    """The layer that a parameter belongs to: the one whose path is the longest beginning of its own."""
    dots = [place for place, letter in enumerate(path) if letter == "."]
    return next((prefixes[path[: dot + 1]] for dot in reversed(dots) if path[: dot + 1] in prefixes), None)


def _named(paths: Sequence[str]) -> str:
    rest = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
