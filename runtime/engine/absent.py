"""Layers of other stages, and the two edges of our own.

A stage keeps the model's full list of layers, so that every index, mask and schedule in the model's own code stays
true. A layer that lives on another node is replaced by an :class:`AbsentLayer`; the first and last local layer sit in a
:class:`LayerEdge`, where the hidden state enters and leaves the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn

if TYPE_CHECKING:
    from collections.abc import Callable

    Layer = Callable[..., Any]


class AbsentLayer:
    """Stands for a layer that another stage computes: returns its input, and answers for the layer's plain attributes.

    It is no ``nn.Module``, so its weights are no parameters of the model any more: lazily loaded, they are never read.
    """

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def __call__(self, hidden: mx.array, *_args: object, **_kwargs: object) -> mx.array:
        """The input, untouched."""
        return hidden

    def __getattr__(self, name: str) -> Any:  # whatever the layer has
        return getattr(self._layer, name)


class Boundary:
    """The hidden state on its way through a stage: shape (batch, tokens, hidden size)."""

    def __init__(self) -> None:
        self.received: mx.array | None = None
        """What the stage before made; None on the first stage, whose first layer takes the model's own embedding."""
        self.produced: mx.array | None = None
        """What the last local layer made in the newest forward."""
        self.zeros = False
        """Warm-up of a later stage: zeros in the shape of the embedding take the place of a hidden state."""


class LayerEdge:
    """The first or last local layer (or the only one): swaps the input for what was received, keeps the output."""

    def __init__(self, layer: Layer, boundary: Boundary, *, enters: bool, leaves: bool) -> None:
        self._layer = layer
        self._boundary = boundary
        self._enters = enters
        self._leaves = leaves

    def __call__(
        self, hidden: mx.array, *args: object, **kwargs: object
    ) -> Any:  # some return more than the hidden state
        """What the layer returns; some return more than the hidden state."""
        if self._enters:
            if self._boundary.received is not None:
                hidden = self._boundary.received
            elif self._boundary.zeros:
                hidden = mx.zeros(hidden.shape, hidden.dtype)
        result = self._layer(hidden, *args, **kwargs)
        if self._leaves:
            self._boundary.produced = result[0] if isinstance(result, tuple) else result
        return result

    def __getattr__(self, name: str) -> Any:  # whatever the layer has
        return getattr(self._layer, name)


def find_layers(model: nn.Module) -> list[Layer]:
    """The model's own list of decoder layers, to be changed in place.

    Every model of mlx-lm has a property ``layers``; the list behind it is looked for by identity, because the property
    may build a new list.
    """
    wanted = list(model.layers)
    for _name, module in model.named_modules():
        for value in module.values():
            if isinstance(value, list) and len(value) == len(wanted) and value and value[0] is wanted[0]:
                return value
    raise ValueError(f"{type(model).__module__} keeps its layers in no list")


def keep_span(model: nn.Module, first_layer: int, end_layer: int) -> tuple[Boundary, list[nn.Module]]:
    """Make ``model`` a stage of layers ``[first_layer, end_layer)``; returns its boundary and those layers."""
    layers = find_layers(model)
    boundary = Boundary()
    local: list[Any] = layers[first_layer:end_layer]
    for index, layer in enumerate(layers):
        if not first_layer <= index < end_layer:
            layers[index] = AbsentLayer(layer)
    for index in {first_layer, end_layer - 1}:
        layers[index] = LayerEdge(layers[index], boundary, enters=index == first_layer, leaves=index == end_layer - 1)
    return boundary, local
