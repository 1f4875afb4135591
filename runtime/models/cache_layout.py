"""What the KV cache of each layer takes: bytes per token, a window, constant state. The wire between probe and planner.

The numbers come from the model's own code: ``runtime/engine/cache_probe.py`` runs it without computing anything, in a
process of its own, and the answer is kept, because it depends on the configuration alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from resources import starting
from runtime.errors import PomonaError
from runtime.models.cache_folder import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

CacheKind = Literal["full", "sliding", "latent", "constant", "other", "none"]
"""Full attention, a sliding window, the compressed row of multi-head latent attention, a state of constant size (Mamba,
linear attention, convolutions), a mixture of these, or no cache at all."""

PROBE_FORMAT = 2
"""Raised whenever the probe answers otherwise than before."""
_PROBE_SECONDS = 60.0


class LayerCache(msgspec.Struct, frozen=True):
    """What one layer keeps of one sequence."""

    kind: CacheKind
    bytes_per_token: int = 0
    window_tokens: int | None = None
    """Of a sliding window: so many tokens at most take memory."""
    state_bytes: int = 0

    def bytes_at(self, tokens: int) -> int:
        """Held after ``tokens`` tokens."""
        return self.state_bytes + self.bytes_per_token * min(tokens, self.window_tokens or tokens)


class CacheCopy(msgspec.Struct, frozen=True):
    """What a stage keeps of the cache of a layer that is on an earlier stage, because its own layers work on it."""

    source: int
    """The layer whose cache it is."""
    users: tuple[int, ...]
    """A stage that begins after ``source`` and has any of these layers keeps the copy."""
    cache: LayerCache
    """What is kept: all of the layer's cache, or a part of it."""


class CacheLayout(msgspec.Struct, frozen=True):
    """The caches of a model."""

    layers: tuple[LayerCache, ...]
    copies: tuple[CacheCopy, ...] = ()


def read_caches(settings: Mapping[str, Any], dtype: str) -> CacheLayout:
    """The caches of the model that ``config.json`` (``settings``) describes; weights of type ``dtype``.

    ``dtype`` is one of safetensors' names. The first call for a configuration takes about a second. Raises
    :class:`PomonaError` if mlx-lm cannot build the model.
    """
    question = json.dumps([PROBE_FORMAT, dtype, settings], sort_keys=True).encode()
    kept = cache_folder() / "cache-layouts" / f"{hashlib.sha256(question).hexdigest()}.json"
    decode = msgspec.json.Decoder(CacheLayout).decode
    try:
        return decode(kept.read_bytes())
    except (OSError, msgspec.DecodeError):
        answer = _probe(question)
    caches = decode(answer)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=kept.parent)
        with open(descriptor, "wb") as file:  # noqa: PTH123  of a descriptor
            file.write(answer)
        Path(temporary).replace(kept)
    except OSError:
        return caches  # it is asked again next time
    return caches


def _probe(question: bytes) -> bytes:
    try:
        done = subprocess.run(
            starting.engine("cache_probe"),
            input=question,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PomonaError("What this model's KV cache takes could not be found within a minute.") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise PomonaError(f"What this model's KV cache takes is not known: {reason[-1] if reason else 'mlx failed'}")
    return done.stdout
