"""How fast this node reads weights: ``python -m runtime.engine.calibrate`` prints a calibration in under 5 s.

One token passes matrices of each kind that models use, more of them than caches hold, as it does when a model decodes.
What a layer takes beside that is the time of one that is too small to read anything. A prompt's chunk tells the
arithmetic.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
import msgspec
from mlx.utils import tree_flatten

from resources.node import Calibration
from runtime.engine import lifeline

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDTH, _INNER = 1024, 3072
_MATRIX_BYTES = {"metal": 256 << 20, "cpu": 32 << 20}
"""More than any cache between memory and the arithmetic."""
_KIND_SECONDS = 0.4
_CHUNK_TOKENS = 128
_SMALL_LAYERS, _SMALL_WIDTH, _SMALL_HEADS = 8, 64, 4
_CONTEXT_TOKENS = 64
_CACHE_TOKENS = {"metal": 32768, "cpu": 4096}
_CACHE_HEADS, _QUERIES_PER_HEAD, _HEAD_WIDTH = 4, 4, 128


class _FeedForward(nn.Module):
    """Three matrices, as every common layer has: most of a model's bytes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # mlx has no types for it
        self.gate = nn.Linear(_WIDTH, _INNER, bias=False)
        self.up = nn.Linear(_WIDTH, _INNER, bias=False)
        self.down = nn.Linear(_INNER, _WIDTH, bias=False)

    def __call__(self, hidden: mx.array) -> mx.array:
        return self.down(nn.silu(self.gate(hidden)) * self.up(hidden))


class _SmallLayer(nn.Module):
    """All operations of a decoder layer, on next to no numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # mlx has no types for it
        self.first_norm, self.second_norm = nn.RMSNorm(_SMALL_WIDTH), nn.RMSNorm(_SMALL_WIDTH)
        self.query, self.key, self.value, self.out, self.gate, self.up, self.down = (
            nn.Linear(_SMALL_WIDTH, _SMALL_WIDTH, bias=False) for _ in range(7)
        )
        self.rope = nn.RoPE(_SMALL_WIDTH // _SMALL_HEADS)

    def __call__(self, hidden: mx.array, keys: mx.array, values: mx.array) -> mx.array:
        heads = (1, hidden.shape[1], _SMALL_HEADS, -1)
        normed = self.first_norm(hidden)
        query, key, value = (
            part(normed).reshape(heads).transpose(0, 2, 1, 3) for part in (self.query, self.key, self.value)
        )
        query, key = self.rope(query, offset=_CONTEXT_TOKENS), self.rope(key, offset=_CONTEXT_TOKENS)
        keys, values = mx.concatenate([keys, key], axis=2), mx.concatenate([values, value], axis=2)
        attended = mx.fast.scaled_dot_product_attention(query, keys, values, scale=0.25)
        hidden = hidden + self.out(attended.transpose(0, 2, 1, 3).reshape(hidden.shape))
        normed = self.second_norm(hidden)
        return hidden + self.down(nn.silu(self.gate(normed)) * self.up(normed))


def calibrate() -> Calibration:
    """Measure this process's device; takes three to five seconds."""
    rates = {}
    flops = 0.0
    for kind in ("4-bit", "8-bit", "bf16", "float32"):
        layers, byte_count = _stack(kind)
        dtype = mx.float32 if kind == "float32" or not mx.metal.is_available() else mx.bfloat16
        token = mx.random.normal((1, 1, _WIDTH)).astype(mx.bfloat16 if kind == "bf16" else dtype)
        seconds = _median_seconds(lambda layers=layers, token=token: _through(layers, token), _KIND_SECONDS)  # type: ignore[misc]
        rates[kind] = max(1, round(byte_count / seconds))
        if kind == "4-bit":
            chunk = mx.broadcast_to(token, (1, _CHUNK_TOKENS, _WIDTH))
            part = layers[: max(1, len(layers) // 8)]
            once = _median_seconds(lambda part=part, chunk=chunk: _through(part, chunk), _KIND_SECONDS)  # type: ignore[misc]
            flops = 2 * 3 * _WIDTH * _INNER * _CHUNK_TOKENS * len(part) / once
        mx.clear_cache()
    return Calibration(rates, flops, _layer_overhead_seconds(), _cache_rate())


def _stack(kind: str) -> tuple[list[_FeedForward], int]:
    """As many layers as make up the bytes, and the bytes."""
    wanted = _MATRIX_BYTES["metal" if mx.metal.is_available() else "cpu"]
    layers: list[_FeedForward] = []
    total = 0
    while total < wanted:
        layer = _FeedForward()
        if kind == "bf16":
            layer.set_dtype(mx.bfloat16)
        elif kind != "float32":
            if mx.metal.is_available():
                layer.set_dtype(mx.bfloat16)
            nn.quantize(layer, bits=int(kind[0]))
        parameters: Any = layer.parameters()  # type: ignore[no-untyped-call]
        mx.eval(parameters)
        flat: Any = tree_flatten(parameters)
        total += sum(array.nbytes for _name, array in flat)
        layers.append(layer)
    return layers, total


def _through(layers: list[_FeedForward], hidden: mx.array) -> mx.array:
    for layer in layers:
        hidden = layer(hidden)
    return hidden


def _cache_rate() -> int:
    """Bytes per second of attention over a cache; on a CPU that is other arithmetic than that of weights."""
    on_metal = mx.metal.is_available()
    dtype = mx.bfloat16 if on_metal else mx.float32
    shape = (1, _CACHE_HEADS, _CACHE_TOKENS["metal" if on_metal else "cpu"], _HEAD_WIDTH)
    query = mx.random.normal((1, _CACHE_HEADS * _QUERIES_PER_HEAD, 1, _HEAD_WIDTH)).astype(dtype)
    keys, values = (mx.random.normal(shape).astype(dtype) for _ in range(2))
    mx.eval(query, keys, values)
    scale = _HEAD_WIDTH**-0.5
    seconds = _median_seconds(
        lambda: mx.fast.scaled_dot_product_attention(query, keys, values, scale=scale), _KIND_SECONDS
    )
    return max(1, round((keys.nbytes + values.nbytes) / seconds))


def _layer_overhead_seconds() -> float:
    layers = [_SmallLayer() for _ in range(_SMALL_LAYERS)]
    mx.eval([layer.parameters() for layer in layers])  # type: ignore[no-untyped-call]
    cached = mx.zeros((1, _SMALL_HEADS, _CONTEXT_TOKENS, _SMALL_WIDTH // _SMALL_HEADS))
    token = mx.random.normal((1, 1, _SMALL_WIDTH))

    def once() -> mx.array:
        hidden = token
        for layer in layers:
            hidden = layer(hidden, cached, cached)
        return hidden

    return _median_seconds(once, _KIND_SECONDS / 2) / _SMALL_LAYERS


def _median_seconds(work: Callable[[], mx.array], limit_seconds: float) -> float:
    """Of as many runs as fit, three at least; the first, which warms up, does not count.

    Building a graph does not count either: a stage does that while it waits (``ahead.py``).
    """
    mx.eval(work())
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < limit_seconds:
        graph = work()
        started = time.perf_counter()
        mx.eval(graph)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> int:
    """Print the calibration as one JSON object."""
    lifeline.die_with_parent(os.getppid())
    sys.stdout.write(msgspec.json.encode(calibrate()).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
