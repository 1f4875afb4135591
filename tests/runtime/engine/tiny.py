"""Tiny models with random weights, and what they answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes

if TYPE_CHECKING:
    from pathlib import Path

CHUNKS = ((3, 5, 7, 11), (13, 17, 19, 23, 29, 31), (37,))
DECODED_TOKENS = 6
_FLOAT32_ROUNDING = 1e-7

_GROWN = {
    "d_model",
    "expert_ffn_hidden_size",
    "ffn_hidden_size",
    "hidden_size",
    "intermediate_size_mlp",
    "kv_n_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "model_dim",
    "n_embd",
    "n_head",
    "n_heads",
    "n_inner",
    "n_kv_heads",
    "num_attention_groups",
    "num_attention_heads",
    "num_attention_heads_per_layer",
    "num_global_key_value_heads",
    "num_heads",
    "num_key_value_heads",
    "num_kv_heads",
    "num_query_heads",
    "o_groups",
    "share_expert_dim",
    "sparse_num_index_heads",
    "swa_num_attention_heads",
    "swa_num_key_value_heads",
    "vocab_size",
    "vocab_size_per_layer_input",
}


def grown(config: dict[str, Any], factor: int) -> dict[str, Any]:
    """``config`` with ``factor`` times as many heads and features."""

    def value(key: str, old: Any) -> Any:
        if isinstance(old, dict):
            return grown(old, factor)
        if key in _GROWN or key.endswith("intermediate_size"):
            if isinstance(old, list):
                return [item * factor for item in old]
            if isinstance(old, int) and not isinstance(old, bool):
                return old * factor
        return old

    return {key: value(key, old) for key, old in config.items()}


def build(config: dict[str, Any]) -> Any:
    """The model with random weights, none of which stays at a value that hides a wrong share, such as 1 or 0."""
    mx.random.seed(1)
    model_class, arguments_class = _get_classes(config)
    model = model_class(arguments_class.from_dict(json.loads(json.dumps(config))))
    model.eval()

    def moved(array: mx.array) -> mx.array:
        return array + (0.2 if array.ndim < 2 else 0.5 * array.shape[-1] ** -0.5) * mx.random.normal(array.shape)

    _change_floats(model, moved)
    if quantization := config.get("quantization"):
        _quantize(model, quantization)
    mx.eval(model.parameters())
    return model


def round_differently(model: nn.Module) -> None:
    """Move every weight by about as much as a float32 is rounded."""
    mx.random.seed(2)
    _change_floats(model, lambda array: array * (1 + _FLOAT32_ROUNDING * mx.random.normal(array.shape)))


def save(model: nn.Module, config: dict[str, Any], folder: Path) -> None:
    """Write a model folder."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    weights: Any = tree_flatten(model.parameters())
    mx.save_safetensors(str(folder / "model.safetensors"), dict(weights))


def greedy(model: Any) -> tuple[list[int], mx.array]:
    """The tokens that follow the prompt, and the logits from which each was chosen, shape (tokens, vocabulary)."""
    cache = make_prompt_cache(model)
    logits = mx.array(0)
    for chunk in CHUNKS:
        logits = model(mx.array([chunk]), cache=cache)[0, -1]
        mx.eval(logits)
    seen, tokens = [logits], [_likeliest(logits)]
    for _ in range(DECODED_TOKENS):
        logits = model(mx.array([tokens[-1:]]), cache=cache)[0, -1]
        seen.append(logits)
        tokens.append(_likeliest(logits))
    return tokens, mx.stack(seen)


def _likeliest(logits: mx.array) -> int:
    return logits.argmax().item()  # type: ignore[return-value]


def distance(logits: mx.array, others: mx.array) -> float:
    """The largest difference, in standard deviations of the first."""
    return (mx.abs(logits - others).max() / mx.std(logits)).item()  # type: ignore[return-value]


def margin(logits: mx.array) -> float:
    """By how much the likeliest token leads where it leads by least, in standard deviations."""
    ordered = mx.sort(logits, axis=-1)
    return ((ordered[:, -1] - ordered[:, -2]).min() / mx.std(logits)).item()  # type: ignore[return-value]


def _change_floats(model: nn.Module, change: Any) -> None:
    def changed(array: mx.array) -> mx.array:
        return change(array) if mx.issubdtype(array.dtype, mx.floating) else array

    model.update(tree_map(changed, model.parameters()))


def _quantize(model: nn.Module, quantization: dict[str, Any]) -> None:
    def predicate(path: str, module: nn.Module) -> bool | dict[str, Any]:
        its = quantization.get(path, {key: quantization[key] for key in ("group_size", "bits")})
        fits = hasattr(module, "to_quantized") and its and module.weight.shape[-1] % its["group_size"] == 0
        return its if fits else False

    nn.quantize(model, quantization["group_size"], quantization["bits"], class_predicate=predicate)
