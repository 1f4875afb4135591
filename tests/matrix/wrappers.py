"""Tiny configurations of models for pictures or sound, of which mlx-lm runs the text part, and of their text parts."""

from __future__ import annotations

from tests.matrix.dense import SLIDING_PATTERN
from tests.matrix.experts import DEEPSEEK, EXPERTS, LLAMA4_ROPE
from tests.matrix.hybrid import DELTA_NET, LFM2
from tests.matrix.variant import Config, text, variants

SLIDING = SLIDING_PATTERN[:7]
GEMMA3N: Config = {
    "num_kv_shared_layers": 3,
    "vocab_size_per_layer_input": 128,
    "sliding_window": 8,
    "rope_local_base_freq": 10000.0,
    "final_logit_softcapping": 30.0,
    "layer_types": [*["sliding_attention", "full_attention"] * 3, "sliding_attention"],
    "activation_sparsity_pattern": [0.9, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0],
    "hidden_size_per_layer_input": 16,
    "altup_num_inputs": 3,
    "altup_coef_clip": 120.0,
    "altup_correct_scale": True,
    "altup_active_idx": 0,
    "laurel_rank": 8,
}
GEMMA4: Config = {
    "global_head_dim": 32,
    "vocab_size_per_layer_input": 128,
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 8,
    "sliding_window_pattern": 3,
}
GEMMA4_SMALL: Config = {**GEMMA4, "num_kv_shared_layers": 3, "hidden_size_per_layer_input": 16}
GEMMA4_EXPERTS: Config = {
    **GEMMA4,
    "enable_moe_block": True,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 32,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
MINIMAX_M3: Config = {
    "dense_intermediate_size": 96,
    "shared_intermediate_size": 32,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_layer_types": ["dense"] + ["sparse"] * 6,
    "layer_types": ["full_attention", "sparse_attention", "sparse_attention"] * 2 + ["full_attention"],
    "sparse_attention_config": {
        "sparse_num_index_heads": 2,
        "sparse_index_dim": 16,
        "sparse_block_size": 4,
        "sparse_topk_blocks": 2,
        "sparse_local_block": 1,
    },
}
QWEN35: Config = {
    **DELTA_NET,
    "full_attention_interval": 4,
    "rope_parameters": {
        "type": "default",
        "mrope_section": [1, 1, 0],
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
    },
}
QWEN35_EXPERTS: Config = {**QWEN35, **EXPERTS, "shared_expert_intermediate_size": 32}


def packed(paths: list[str]) -> Config:
    """A Qwen3.5 in the two-bit form that folds a Hadamard rotation into the weights of some modules."""
    inside = text("qwen3_5_text", **QWEN35, hidden_size=128, intermediate_size=128, tied=True)
    modules = [{"path": path, "block": 0, "embedding": False, "dtype": "float16"} for path in paths]
    return {
        "model_type": "prism_hadamard_qwen35",
        "text_config": inside,
        "schema_version": 2,
        "tensor_namespace": "mlx-vlm-qwen3_5",
        "quantization": {"bits": 2, "group_size": 128, "mode": "affine"},
        "modules": modules,
    }


def wrapped(model_type: str, inside: Config) -> Config:
    """``inside`` as the text part of a larger model."""
    return {"model_type": model_type, "text_config": inside}


WRAPPER_TYPES = {
    "gemma3": variants(
        sliding={
            **wrapped(
                "gemma3",
                text("gemma3_text", sliding_window=8, sliding_window_pattern=3, query_pre_attn_scalar=16),
            ),
            "vocab_size": 128,
        },
    ),
    "gemma3n": variants(
        shared_keys=wrapped("gemma3n", text("gemma3n_text", **GEMMA3N)),
        own_keys=wrapped("gemma3n", text("gemma3n_text", **{**GEMMA3N, "num_kv_shared_layers": 0})),
    ),
    "gemma4": variants(
        small={**wrapped("gemma4", text("gemma4_text", **GEMMA4_SMALL)), "vocab_size": 128},
        large={**wrapped("gemma4", text("gemma4_text", **GEMMA4)), "vocab_size": 128},
    ),
    "gemma4_text": variants(
        shared_keys=text("gemma4_text", **GEMMA4_SMALL, tied=True),
        own_keys=text("gemma4_text", **GEMMA4, tied=True),
        experts=text("gemma4_text", **GEMMA4_EXPERTS, tied=True),
        untied=text("gemma4_text", **GEMMA4),
    ),
    "kimi_k25": variants(default=wrapped("kimi_k25", text("deepseek_v3", **DEEPSEEK))),
    "kimi_vl": variants(default=wrapped("kimi_vl", text("deepseek_v3", **DEEPSEEK))),
    "lfm2-vl": variants(default=wrapped("lfm2-vl", text("lfm2", **LFM2))),
    "llama4": variants(
        chunked=wrapped(
            "llama4",
            text(
                "llama4_text",
                attention_bias=False,
                attention_chunk_size=8,
                interleave_moe_layer_step=2,
                intermediate_size_mlp=96,
                num_experts_per_tok=1,
                num_local_experts=4,
                rope_scaling=None,
                use_qk_norm=True,
            ),
        ),
    ),
    "minimax_m3_vl": variants(default=wrapped("minimax_m3_vl", text("minimax_m3", **MINIMAX_M3))),
    "mistral3": variants(
        llama=wrapped("mistral3", text("mistral")),
        ministral3=wrapped("mistral3", text("ministral3", rope_parameters=LLAMA4_ROPE)),
        mistral4=wrapped("mistral3", text("mistral4", **DEEPSEEK, rope_parameters=LLAMA4_ROPE)),
    ),
    "pixtral": variants(default=wrapped("pixtral", text("mistral"))),
    "prism_hadamard_qwen35": variants(
        default=packed(["model.layers.0.mlp.gate_proj", "model.layers.3.mlp.up_proj"]),
    ),
    "qwen2_vl": variants(
        tied=wrapped("qwen2_vl", text("qwen2", tied=True)), alias_qwen2_5_vl=wrapped("qwen2_5_vl", text("qwen2"))
    ),
    "qwen3_5": variants(
        text_tied=text("qwen3_5", **QWEN35, tied=True),
        text_untied=text("qwen3_5", **QWEN35),
        pictures=wrapped("qwen3_5", text("qwen3_5_text", **QWEN35)),
        pictures_tied=wrapped("qwen3_5", text("qwen3_5_text", **QWEN35, tied=True)),
        four_bits=text("qwen3_5", **QWEN35, bits=4),
    ),
    "qwen3_5_moe": variants(
        text=text("qwen3_5_moe", **QWEN35_EXPERTS),
        pictures=wrapped("qwen3_5_moe", text("qwen3_5_moe_text", **QWEN35_EXPERTS)),
        four_bits=text("qwen3_5_moe", **QWEN35_EXPERTS, bits=4),
    ),
    "qwen3_vl": variants(default=wrapped("qwen3_vl", text("qwen3", tied=True))),
    "qwen3_vl_moe": variants(default=wrapped("qwen3_vl_moe", text("qwen3_moe", **EXPERTS))),
}
