"""Tiny random models, one of each kind of layer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx_lm.utils import _get_classes, save_model

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = 7
BASE = {
    "hidden_size": 64,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": 128,
    "max_position_embeddings": 256,
    "rope_theta": 10000.0,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama, tied": {**BASE, "model_type": "llama", "tie_word_embeddings": True},
    "llama, untied": {**BASE, "model_type": "llama", "tie_word_embeddings": False},
    "qwen2": {**BASE, "model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {**BASE, "model_type": "qwen3", "tie_word_embeddings": True},
    "gemma3, sliding windows": {
        **BASE,
        "model_type": "gemma3_text",
        "sliding_window": 8,
        "sliding_window_pattern": 3,
        "query_pre_attn_scalar": 16,
    },
    "qwen3-moe": {
        **BASE,
        **EXPERTS,
        "model_type": "qwen3_moe",
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "tie_word_embeddings": False,
    },
    "qwen3-next, linear and full attention": {
        **BASE,
        **EXPERTS,
        "model_type": "qwen3_next",
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "shared_expert_intermediate_size": 32,
        "full_attention_interval": 4,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "partial_rotary_factor": 0.5,
        "tie_word_embeddings": False,
    },
    "mamba2": {
        "model_type": "mamba2",
        "intermediate_size": 128,
        "num_heads": 8,
        "head_dim": 16,
        "vocab_size": 128,
        "hidden_size": 64,
        "state_size": 16,
        "num_hidden_layers": LAYERS,
        "layer_norm_epsilon": 1e-5,
        "conv_kernel": 4,
        "n_groups": 1,
        "use_bias": False,
        "use_conv_bias": True,
        "tie_word_embeddings": True,
        "time_step_limit": [0.0, 10.0],
        "time_step_rank": "auto",
    },
}


def build(config: dict[str, Any]):
    mx.random.seed(0)
    model_class, arguments_class = _get_classes(config)
    model = model_class(arguments_class.from_dict(config))
    mx.eval(model.parameters())
    return model


def save(name: str, folder: Path) -> Path:
    """The same model as files that mlx-lm loads."""
    save_model(folder, build(CONFIGS[name]))
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    return folder
