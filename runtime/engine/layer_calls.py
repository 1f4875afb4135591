"""Standing in the way of a model's calls to its layers, without a change to the model.

A layer's class is replaced by a subclass of it that calls somebody else. So the layer keeps its place, its attributes
and its type, on which models base their masks and schedules.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import mlx.nn as nn

    from runtime.engine.handover import Carried, Handover


class LayerCall:
    """One call of a layer by the model. Change ``arguments`` before :meth:`run`."""

    def __init__(self, layer: LayerCalls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.index = layer.index
        self.layer = layer.layer
        self._method = layer.method
        self._bound = layer.signature.bind(*args, **kwargs)

    @property
    def arguments(self) -> dict[str, Any]:
        """By the layer's own names for them."""
        return self._bound.arguments

    def run(self) -> Any:
        """Call the layer itself."""
        return self._method(self.layer, *self._bound.args, **self._bound.kwargs)


class LayerCalls:
    """The calls of one layer, answered by ``answer`` until :meth:`leave`."""

    def __init__(self, index: int, layer: nn.Module, answer: Callable[[LayerCall], Any]) -> None:
        self.index = index
        self.layer = layer
        self._kind = type(layer)
        self.method: Any = self._kind.__call__
        _self, *parameters = inspect.signature(self.method).parameters.values()
        self.signature = inspect.Signature(parameters)

        def answer_call(_layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return answer(LayerCall(self, args, kwargs))

        answering = {"__call__": answer_call, "__module__": self._kind.__module__}
        layer.__class__ = type(self._kind.__name__, (self._kind,), answering)

    def leave(self) -> None:
        """Let the model call its layer directly again."""
        self.layer.__class__ = self._kind


class Keys:
    """In a cache's place for one call: remembers the keys and values that the layer adds to it."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self.added: tuple[mx.array, mx.array] | None = None

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> Any:
        """As the cache does."""
        self.added = keys, values
        return self._cache.update_and_fetch(keys, values)

    def __getattr__(self, name: str) -> Any:  # whatever the cache has
        return getattr(self._cache, name)


class SeenLayer:
    """What a model does with one of its layers in a forward of one token."""

    def __init__(self) -> None:
        self.caches: set[int] = set()
        """Which of the model's caches the layer is given."""
        self.taken: Carried = {}
        """What it is handed by the layers before it; arrays that are not computed."""
        self.wanted: Carried = {}
        """What it alone needs of the embedding."""
        self.keys: tuple[mx.array, mx.array] | None = None
        """What it adds to its cache, if later layers work on that."""


class SeenModel:
    """A forward of one token, of which nothing is computed or read: how ``model`` calls its layers."""

    def __init__(self, model: nn.Module, layers: Sequence[nn.Module], handover: Handover) -> None:
        caches = make_prompt_cache(model)
        self.layers = [SeenLayer() for _ in layers]
        self.order: list[int] = []
        """The layers' indices in the order of their calls."""
        self.is_chain = True
        """Whether each layer's hidden state is the very array that the one before returned."""
        self._returned: Any = None
        self._handover = handover
        self._places = {id(cache): place for place, cache in enumerate(caches)}
        watched = [LayerCalls(index, layer, self._note) for index, layer in enumerate(layers)]
        try:
            model(mx.array([[0]]), cache=caches)
        finally:
            for layer in watched:
                layer.leave()
        self.filled = {place for place, cache in enumerate(caches) if not (handover.is_lazy and cache.empty())}
        """The caches that hold something afterwards: some models have caches for layers that use none."""

    def _note(self, call: LayerCall) -> Any:
        self.order.append(call.index)
        seen = self.layers[call.index]
        seen.caches |= {self._places[id(value)] for value in call.arguments.values() if id(value) in self._places}
        seen.taken, seen.wanted = self._handover.taken(call), self._handover.wanted(call)
        hidden = call.arguments[self._handover.hidden(call)]
        self.is_chain = self.is_chain and (self._returned is None or hidden is self._returned)
        keys = self._handover.watch_keys(call)
        result = call.run() if self._handover.is_lazy else self._handover.skip(call)
        self._returned = result[0] if isinstance(result, tuple) else result
        seen.keys = None if keys is None else keys.added
        return result
