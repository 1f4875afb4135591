"""What a token costs a model's layers beside their weights, which come from the files' headers.

Until the model's own code is asked what its caches take (``cache_layout.py``), they are estimated from ``config.json``:
``2 · key-value heads · head dimension`` numbers per token and layer, or the compressed row of multi-head latent
attention. A sliding window counts only where ``layer_types`` names it; linear attention and Mamba count as nothing,
because their state is small and of constant size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from runtime.models.cache_layout import CacheCopy, LayerCache  # msgspec resolves the annotations when it decodes
from runtime.models.experts import experts_per_token

if TYPE_CHECKING:
    from collections.abc import Mapping

WeightKind = Literal["4-bit", "8-bit", "bf16", "float32"]
"""How weights are stored, as far as it decides how fast they are read; other widths count as the next wider kind."""

_SINGLE = "F32"
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


class ModelFigures(msgspec.Struct, frozen=True):
    """All layers, and what they have in common."""

    caches: tuple[LayerCache, ...]
    hidden_bytes: int
    """What one token's hidden state weighs on its way to the next stage."""
    parameter_bytes: float
    """Of one weight, with its share of a group's scale and bias where the model is quantized."""
    weight_kind: WeightKind
    visited_share: float = 1.0
    """Of the experts of a layer, the part that one token visits; 1 where no router picks any."""
    dtype: str = "BF16"
    """Of the numbers that are not quantized, so of keys, values and hidden states; one of safetensors' names."""
    copies: tuple[CacheCopy, ...] = ()
    """What stages keep of the caches of earlier ones."""


def figures_from_config(settings: Mapping[str, Any], layer_count: int, dtype: str) -> ModelFigures:
    """The figures of a model of ``layer_count`` layers; ``settings`` is what ``config.json`` says."""
    text = settings.get("text_config")
    config = {**settings, **(text if isinstance(text, dict) else {})}
    number_bytes = 4 if dtype == _SINGLE else 2
    hidden = _number(config, "hidden_size", "n_embd", "d_model", "dim")
    experts, visited = _number(config, *_EXPERTS), experts_per_token(settings)
    return ModelFigures(
        caches=_caches(config, layer_count, hidden, number_bytes),
        hidden_bytes=hidden * number_bytes,
        parameter_bytes=_parameter_bytes(config, number_bytes),
        weight_kind=_kind(config, dtype),
        visited_share=visited / experts if 0 < visited < experts else 1.0,
        dtype=dtype,
    )


def _caches(config: Mapping[str, Any], layer_count: int, hidden: int, number_bytes: int) -> tuple[LayerCache, ...]:
    kinds = config.get("layer_types")
    kinds = kinds if isinstance(kinds, list) and len(kinds) == layer_count else ["full_attention"] * layer_count
    latent = _number(config, "kv_lora_rank")
    if latent:
        numbers = latent + _number(config, "qk_rope_head_dim")
    else:
        heads = _number(config, "num_attention_heads", "n_head", "n_heads", "num_heads")
        key_value_heads = _number(config, "num_key_value_heads", "n_kv_heads", "num_kv_heads") or heads
        numbers = 2 * key_value_heads * (_number(config, "head_dim") or hidden // max(heads, 1))
    row_bytes, window = numbers * number_bytes, _number(config, "sliding_window") or None
    found = []
    for kind in map(str, kinds):
        if "attention" not in kind or "linear" in kind:
            found.append(LayerCache("none"))
        elif kind == "sliding_attention" and window:
            found.append(LayerCache("sliding", row_bytes, window))
        else:
            found.append(LayerCache("latent" if latent else "full", row_bytes))
    return tuple(found)


def _bits(config: Mapping[str, Any]) -> int:
    quantization = config.get("quantization")
    return _number(quantization, "bits") if isinstance(quantization, dict) else 0


def _kind(config: Mapping[str, Any], dtype: str) -> WeightKind:
    if bits := _bits(config):
        return "4-bit" if bits <= 4 else "8-bit"
    return "float32" if dtype == _SINGLE else "bf16"


def _parameter_bytes(config: Mapping[str, Any], number_bytes: int) -> float:
    bits = _bits(config)
    if not bits:
        return number_bytes
    group = _number(config["quantization"], "group_size") or 64
    return bits / 8 + 2 * number_bytes / group


def _number(config: Mapping[str, Any], *names: str) -> int:
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and 0 < value < 2**40), 0)
