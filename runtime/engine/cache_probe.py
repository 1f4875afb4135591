"""What each layer's cache takes, found by running the model's own code without computing a thing.

    python -m runtime.engine.cache_probe < [format, dtype, config] > caches

Arrays of MLX have shapes before they have values. So a forward of two lengths, never evaluated, tells every cache's
bytes exactly, whatever the architecture, and reads no weight.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from typing import Any

import mlx.core as mx
import msgspec
from mlx_lm.models.cache import ArraysCache, CacheList, ChunkedKVCache, make_prompt_cache

from runtime.engine import lifeline
from runtime.engine.layer_calls import LayerCall, LayerCalls
from runtime.engine.model_handovers import handover_of
from runtime.engine.without_text import import_mlx_lm
from runtime.models.cache_layout import CacheCopy, CacheKind, CacheLayout, LayerCache

_SHORT, _LONG = 256, 512
"""Caches grow by 256 tokens, so these lengths are full."""
_DTYPES = {"F32": mx.float32, "F16": mx.float16}


def probe(config: dict[str, Any], dtype: mx.Dtype) -> CacheLayout:
    """The caches of a model's layers. ``dtype`` is that of its weights, and so of keys and values."""
    from mlx_lm.utils import _get_classes  # may be a stand-in without its text half

    model_class, arguments_class = _get_classes(config)
    model = model_class(arguments_class.from_dict(copy.deepcopy(config)))
    model.set_dtype(dtype)
    model.eval()
    short, long = _traced(model, _SHORT), _traced(model, _LONG)
    layers = tuple(_layer_cache(*pair, config) for pair in zip(short, long, strict=True))
    copies = []
    for copied in handover_of(model, model.layers).copies():
        kept = layers[copied.source]
        if copied.field:
            arrays = [getattr(caches[copied.source][0], copied.field).nbytes for caches in (short, long)]
            kept = LayerCache("other", *_grown(*arrays))
        copies.append(CacheCopy(copied.source, copied.users, kept))
    return CacheLayout(layers, tuple(copies))


def _traced(model: Any, tokens: int) -> list[list[Any]]:
    """The filled caches of each layer after ``tokens`` tokens; one that several layers share is the first one's."""
    caches = make_prompt_cache(model)
    places = {id(cache): place for place, cache in enumerate(caches)}
    given: dict[int, int] = {}

    def note(call: LayerCall) -> Any:
        for value in call.arguments.values():
            if id(value) in places:
                given.setdefault(places[id(value)], call.index)
        return call.run()

    watched = [LayerCalls(index, layer, note) for index, layer in enumerate(model.layers)]
    try:
        model(mx.zeros((1, tokens), mx.int32), cache=caches)
    finally:
        for layer in watched:
            layer.leave()
    found: list[list[Any]] = [[] for _ in model.layers]
    for place, cache in enumerate(caches):
        if not cache.empty():
            found[given.get(place, min(place, len(found) - 1))].append(cache)
    return found


def _layer_cache(short: list[Any], long: list[Any], config: dict[str, Any]) -> LayerCache:
    parts = [(_parts(before), _parts(after)) for before, after in zip(short, long, strict=True)]
    flat = [pair for before, after in parts for pair in zip(before, after, strict=True)]
    if not flat:
        return LayerCache("none")
    per_token = state = 0
    windows: set[int | None] = set()
    for before, after in flat:
        window = _window_tokens(after)
        if window is not None and getattr(after, "keys", None) is not None:
            per_token += after.nbytes // after.keys.shape[2]  # for a whole prompt it takes more than its window
            windows.add(window)
            continue
        growth, _window, constant = _grown(before.nbytes, after.nbytes)
        per_token += growth
        state += constant
        if growth:
            windows.add(None)
    window_tokens = max((window for window in windows if window is not None), default=None)
    if len(windows) > 1:  # a window beside something that grows: counted as if all of it grew
        window_tokens = None
    return LayerCache(_kind(flat, windows, config, state), per_token, window_tokens, state)


def _window_tokens(cache: Any) -> int | None:
    """So many tokens at most are held; None if all are."""
    if isinstance(cache, ChunkedKVCache):
        return int(cache.chunk_size) + cache.step  # the next token is added before the oldest ones go
    window = getattr(cache, "max_size", None)
    return window if isinstance(window, int) else None


def _grown(short_bytes: int, long_bytes: int) -> tuple[int, None, int]:
    """Bytes per token, no window, and what is constant, from what two lengths take."""
    per_token = (long_bytes - short_bytes) // (_LONG - _SHORT)
    return per_token, None, short_bytes - per_token * _SHORT


def _kind(flat: list[Any], windows: set[int | None], config: dict[str, Any], state: int) -> CacheKind:
    if len(windows) > 1 or (windows and state):
        return "other"
    if not windows:
        return "constant" if all(isinstance(cache, ArraysCache) for _before, cache in flat) else "other"
    if windows != {None}:
        return "sliding"
    rank = config.get("kv_lora_rank") or config.get("text_config", {}).get("kv_lora_rank")
    is_latent = any(getattr(cache, "keys", None) is not None and cache.keys.shape[-1] == rank for _, cache in flat)
    return "latent" if is_latent else "full"


def _parts(cache: Any) -> list[Any]:
    if isinstance(cache, CacheList):
        return [part for each in cache.caches for part in _parts(each) if not part.empty()]
    return [cache]


def main() -> int:
    """The command line. What went wrong is one sentence on standard error."""
    lifeline.die_with_parent(os.getppid())
    import_mlx_lm()
    _format, dtype, config = json.loads(sys.stdin.buffer.read())
    try:
        caches = probe(config, _DTYPES.get(dtype, mx.bfloat16))
    except Exception as error:  # noqa: BLE001  whatever a model's code raises for a configuration it does not like
        sys.stderr.write(f"mlx-lm makes no model of its configuration ({type(error).__name__}: {error}).\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(caches))
    return 0


if __name__ == "__main__":
    sys.exit(main())
