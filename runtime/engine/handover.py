"""What the layers of a model hand on to the layers after them: what crosses a boundary between two stages.

In nearly every model that is one array, the hidden state: each layer's first argument, and all that it returns. The
models that hand on more are in ``model_handovers.py``. Anything that a layer takes and that is not listed (masks,
positions, caches) a stage makes for itself from the tokens, which every stage knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mlx.core as mx

from runtime.engine.layer_calls import Keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mlx.nn as nn

    from runtime.engine.layer_calls import LayerCall

Carried = dict[str, mx.array]
"""What crosses a boundary, by name."""

HIDDEN = "hidden"


class OldKeys(NamedTuple):
    """Keys and values of a layer on an earlier stage, as its cache returned them, and where the new ones begin."""

    fetched: tuple[mx.array, mx.array]
    offset: mx.array


class Copied(NamedTuple):
    """What later stages keep of the cache of the layer ``source``."""

    source: int
    users: tuple[int, ...]
    """A stage that begins after ``source`` and has any of these layers keeps it."""
    field: str = ""
    """Of the cache, the one array that is kept; empty for all of it."""


class Handover:
    """The hidden state alone."""

    every_call = False
    """Whether each local layer's call is of interest, not the first and last one's alone."""
    is_lazy = True
    """Whether a layer's call builds a graph and computes nothing."""
    growing_bytes_per_token = 0
    """The most that comes on top, for one token, at the end of the longest text."""

    def __init__(self, _model: nn.Module, _layers: Sequence[nn.Module]) -> None:
        self.key_sources: dict[int, int] = {}
        """For each layer that works on the keys and values of an earlier one: that earlier one."""

    def copies(self) -> list[Copied]:
        """What stages keep of the caches of earlier ones."""
        sources = self.key_sources.items()
        return [
            Copied(source, tuple(user for user, its in sources if its == source))
            for source in dict.fromkeys(self.key_sources.values())
        ]

    def hidden(self, call: LayerCall) -> str:
        """The name of the argument that is the hidden state."""
        return next(iter(call.arguments))

    def taken(self, call: LayerCall) -> Carried:
        """What the layer is handed by those before it."""
        return {HIDDEN: call.arguments[self.hidden(call)]}

    def enter(self, call: LayerCall, received: Carried) -> None:
        """Hand the first layer of a stage what the stage before had for it."""
        call.arguments[self.hidden(call)] = received[HIDDEN]

    def wanted(self, _call: LayerCall) -> Carried:
        """What this one layer needs of the embedding, which the first stage alone has."""
        return {}

    def supply(self, call: LayerCall, received: Carried) -> None:
        """Hand a layer of a later stage what :meth:`wanted` took for it."""

    def leave(self, call: LayerCall) -> None:
        """Called for the last layer of a stage, before it runs."""

    def skip(self, call: LayerCall, _keys: OldKeys | None = None) -> Any:
        """What the model gets from a layer that does nothing."""
        return call.arguments[self.hidden(call)]

    def watch_keys(self, call: LayerCall) -> Keys | None:
        """For a layer whose keys and values others work on: what will tell which it adds."""
        if call.index not in self.key_sources.values() or call.arguments.get("cache") is None:
            return None
        call.arguments["cache"] = keys = Keys(call.arguments["cache"])
        return keys

    def replay_keys(self, call: LayerCall, received: Carried) -> OldKeys:
        """For the same layer on a later stage: add what it added there to the copy of its cache."""
        cache, names = call.arguments["cache"], key_names(call.index)
        offset = mx.array(cache.offset)
        return OldKeys(cache.update_and_fetch(*(received[name] for name in names)), offset)


def key_names(source: int) -> tuple[str, str]:
    """Under which names a layer's new keys and values cross."""
    return f"keys.{source}", f"values.{source}"
