"""A model in plain numbers, from its layout and its ``config.json``.

Weights are exact: they come from the files' headers. Approximate is the rest, until a run measures it:

- The KV cache is ``2 · key-value heads · head dimension`` numbers per token and layer, or the compressed row of
  multi-head latent attention. A sliding window counts only where ``layer_types`` names it; linear attention and Mamba
  count as nothing, because their state is small and of constant size.
- Active bytes leave out the experts that a token does not visit, if the configuration says how large an expert is.
- A token's arithmetic is two operations per active parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.planning.cost import LayerCost, ModelCost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.models.layout import ModelLayout

_HALF, _SINGLE = 2, 4
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


def model_cost(
    layout: ModelLayout, settings: Mapping[str, Any], forbidden_cuts: frozenset[int] = frozenset()
) -> ModelCost:
    """``layout`` with its costs; ``settings`` is what ``config.json`` says."""
    text = settings.get("text_config")
    config = {**settings, **(text if isinstance(text, dict) else {})}
    number_bytes = _SINGLE if "32" in str(config.get("torch_dtype") or config.get("dtype")) else _HALF
    hidden = _number(config, "hidden_size", "n_embd", "d_model", "dim")
    parameter_bytes = _parameter_bytes(config, number_bytes)
    kinds = config.get("layer_types")
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(layout.layer_bytes) else ["full_attention"]
    kv_bytes = _kv_numbers(layout, config, hidden) * number_bytes
    experts, chosen, expert_bytes = _experts(config, hidden, parameter_bytes)
    layers = []
    for index, weights in enumerate(layout.layer_bytes):
        kind = str(kinds[index % len(kinds)])
        routed = experts * expert_bytes
        active = round(weights - (experts - chosen) * expert_bytes) if routed < weights else weights
        layers.append(
            LayerCost(
                # What the first stage alone holds beside the embedding counts as part of its first layer.
                weight_bytes=weights + (layout.first_alone_bytes if index == 0 else 0),
                active_bytes=active,
                kv_bytes_per_token=kv_bytes if "attention" in kind and "linear" not in kind else 0,
                window_tokens=(_number(config, "sliding_window") or None) if kind == "sliding_attention" else None,
                flops_per_token=2 * active / parameter_bytes,
            )
        )
    return ModelCost(
        name=layout.name,
        layers=tuple(layers),
        embedding_bytes=layout.embedding_bytes - layout.first_alone_bytes,
        head_bytes=layout.head_bytes,
        tied_embedding=layout.tied_embedding,
        hidden_bytes=hidden * number_bytes,
        forbidden_cuts=frozenset(range(1, len(layers))) if layout.pipeline_refusal else forbidden_cuts,
    )


def _kv_numbers(layout: ModelLayout, config: Mapping[str, Any], hidden: int) -> int:
    if latent := _number(config, "kv_lora_rank"):
        return latent + _number(config, "qk_rope_head_dim")
    head_dimension = _number(config, "head_dim") or hidden // max(layout.attention_heads, 1)
    return 2 * layout.key_value_heads * head_dimension


def _parameter_bytes(config: Mapping[str, Any], number_bytes: int) -> float:
    """Bytes of a parameter, with its share of a group's scale and bias where the model is quantized."""
    quantization = config.get("quantization")
    if isinstance(quantization, dict) and (bits := _number(quantization, "bits")):
        return bits / 8 + 2 * number_bytes / (_number(quantization, "group_size") or 64)
    return number_bytes


def _experts(config: Mapping[str, Any], hidden: int, parameter_bytes: float) -> tuple[int, int, float]:
    """Experts of a layer, those that a token visits, and the bytes of one; zeros if the model has none."""
    experts, chosen = _number(config, *_EXPERTS), _number(config, "num_experts_per_tok", "experts_per_token")
    if not 0 < chosen <= experts:
        return 0, 0, 0.0
    width = _number(config, "moe_intermediate_size", "intermediate_size")
    return experts, chosen, 3 * hidden * width * parameter_bytes


def _number(config: Mapping[str, Any], *names: str) -> int:
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and 0 < value < 2**40), 0)
