"""A run of a model's layers that works without the others.

A stage keeps the model whole, so that every index, mask and schedule in the model's own code stays true. The calls of
layers that live on other nodes are answered here: such an *absent layer* hands on what it is given. So the first local
layer is called as ever, only that it is handed what the stage before sent; and the first absent layer after the last
local one is called with just what the next stage needs.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from runtime.engine.handover import HIDDEN, Carried, key_names
from runtime.engine.layer_calls import LayerCall, LayerCalls, SeenModel
from runtime.engine.model_handovers import handover_of
from runtime.errors import PomonaError

if TYPE_CHECKING:
    import mlx.nn as nn


class Span:
    """Layers ``[first_layer, end_layer)`` of ``model``, which is changed: others of its layers do nothing any more.

    Raises :class:`PomonaError` for a model that does not call its layers one after the other, each of them once.
    """

    def __init__(self, model: nn.Module, first_layer: int, end_layer: int) -> None:
        layers: list[nn.Module] = list(model.layers)
        self._model = model
        self._first, self._end = first_layer, end_layer
        self.is_first, self.is_last = first_layer == 0, end_layer == len(layers)
        self.local = layers[first_layer:end_layer]
        self._received: Carried = {}
        self._handed_on: Carried = {}
        self._handover = handover_of(model, layers)
        seen = SeenModel(model, layers, self._handover)
        is_whole = self.is_first and self.is_last
        if not is_whole and (seen.order != list(range(len(layers))) or not seen.is_chain):
            raise PomonaError(
                f"A {model.model_type} model does not run its layers one after the other, each once for a token, so it "
                "cannot be split."
            )
        sources = self._handover.key_sources.items()
        self._copied = {source for user, source in sources if source < first_layer <= user < end_layer}
        """Layers of earlier stages whose keys layers of this one work on."""
        self._imported = {source for user, source in sources if source < first_layer <= user}
        self._exported = {source for user, source in sources if source < end_layer <= user}
        self.cache_places = self._places(seen)
        """Which of the model's caches are filled here."""
        self._incoming = {name: (array.shape, array.dtype) for name, array in self._expected(seen).items()}
        for index, layer in enumerate(layers):
            if not first_layer <= index < end_layer:
                LayerCalls(index, layer, self._answer_absent)
            elif not is_whole and (self._handover.every_call or index in {first_layer, end_layer - 1}):
                LayerCalls(index, layer, self._answer_local)

    @property
    def received_bytes_per_token(self) -> int:
        """The most bytes that the stage before sends for one token; 0 on the first stage."""
        if not self._incoming:
            return 0
        fixed = sum(prod(shape) * dtype.size for shape, dtype in self._incoming.values())
        return fixed + self._handover.growing_bytes_per_token

    def blank(self) -> Carried:
        """Zeros in place of what the stage before sends for one token."""
        return {name: mx.zeros(shape, dtype) for name, (shape, dtype) in self._incoming.items()}

    def fits(self, received: Carried, token_count: int) -> bool:
        """Whether ``received`` can be what the stage before sends for ``token_count`` tokens."""
        if not self._incoming:
            return not received
        shape, _dtype = self._incoming[HIDDEN]
        return received.keys() >= self._incoming.keys() and received[HIDDEN].size == prod(shape) * token_count

    def forward(self, tokens: mx.array, caches: list[Any], received: Carried) -> tuple[Any, Carried]:
        """What the model returns, which means something on the last stage, and what the next stage is to be sent."""
        self._received, self._handed_on = received, {}
        try:
            result = self._model(tokens, cache=caches)
            return result, self._handed_on
        finally:
            self._received, self._handed_on = {}, {}

    def _answer_local(self, call: LayerCall) -> Any:
        if not self.is_first:
            self._handover.supply(call, self._received)
            if call.index == self._first:
                self._handover.enter(call, self._received)
        keys = self._handover.watch_keys(call) if call.index in self._exported else None
        if call.index == self._end - 1 and not self.is_last:
            self._handover.leave(call)
        result = call.run()
        if keys is not None and keys.added is not None:
            self._hand_on(dict(zip(key_names(call.index), keys.added, strict=True)))
        return result

    def _answer_absent(self, call: LayerCall) -> Any:
        if call.index < self._first:
            if call.index in self._imported & self._exported:
                self._hand_on({name: self._received[name] for name in key_names(call.index)})
            keys = self._handover.replay_keys(call, self._received) if call.index in self._copied else None
            return self._handover.skip(call, keys)
        if not self.is_first:
            self._handover.supply(call, self._received)
        if call.index == self._end:
            self._hand_on(self._handover.taken(call))
        self._hand_on(self._handover.wanted(call))
        return self._handover.skip(call)

    def _hand_on(self, arrays: Carried) -> None:
        # A copy, because a model may change an array in place afterwards; and sockets want one without gaps.
        self._handed_on |= {name: mx.contiguous(array) for name, array in arrays.items()}

    def _places(self, seen: SeenModel) -> tuple[int, ...]:
        """Caches of local layers and of those whose keys are copied, also caches that no layer is given."""
        here = {*range(self._first, self._end), *self._copied}
        ours: set[int] = set().union(*(seen.layers[index].caches for index in here))
        others: set[int] = set().union(*(layer.caches for layer in seen.layers)) - ours
        return tuple(sorted(seen.filled - others))

    def _expected(self, seen: SeenModel) -> Carried:
        if self.is_first:
            return {}
        expected = dict(seen.layers[self._first].taken)
        for layer in seen.layers[self._first :]:
            expected |= layer.wanted
        for source in self._imported:
            expected |= dict(zip(key_names(source), seen.layers[source].keys or (), strict=True))
        return expected
