"""Tiny configurations of models whose layers are all alike, or differ by a sliding window alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.matrix.variant import text, variants

if TYPE_CHECKING:
    from tests.matrix.variant import Config

SLIDING_PATTERN = ["sliding_attention", "sliding_attention", "full_attention"] * 3
"""Of seven layers, only the third and the sixth see everything."""
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
GPT_SIZES: Config = {"n_embd": 64, "n_head": 4, "n_layer": 7, "n_positions": 256, "layer_norm_epsilon": 1e-5}


def sliding(model_type: str, **changes: Any) -> Config:
    """A text model with a window of 8 tokens, which the prompts of the matrix leave behind."""
    return text(model_type, sliding_window=8, layer_types=SLIDING_PATTERN[:7], **changes)


DENSE = {
    "afm7": variants(
        default={
            "model_type": "afm7",
            "vocab_size": 128,
            "hidden_dim": 64,
            "num_layers": 7,
            "num_kv_reuse_layers": 3,
            "num_heads": 4,
            "num_kv_heads": 2,
        },
    ),
    "apertus": variants(
        untied=text("apertus", mlp_bias=False, attention_bias=False, post_norm=False, qk_norm=True),
        tied=text("apertus", mlp_bias=False, attention_bias=False, post_norm=False, qk_norm=True, tied=True),
    ),
    "bitnet": variants(default=text("bitnet", tied=True)),
    "cohere": variants(
        default=text("cohere", layer_norm_eps=1e-5), qk_norm=text("cohere", layer_norm_eps=1e-5, use_qk_norm=True)
    ),
    "cohere2": variants(sliding=text("cohere2", layer_norm_eps=1e-5, sliding_window=8, sliding_window_pattern=4)),
    "ernie4_5": variants(tied=text("ernie4_5", use_bias=False, tied=True), untied=text("ernie4_5", use_bias=True)),
    "exaone": variants(
        untied=text("exaone", num_layers=7, layer_norm_epsilon=1e-5),
        tied=text("exaone", num_layers=7, layer_norm_epsilon=1e-5, tied=True),
    ),
    "exaone4": variants(
        sliding=text("exaone4", rope_scaling=LLAMA3_ROPE, sliding_window=8, sliding_window_pattern="LLLG", tied=True),
        full=text("exaone4", rope_scaling=LLAMA3_ROPE, sliding_window=None, sliding_window_pattern=None),
    ),
    "gemma": variants(default=text("gemma")),
    "gemma2": variants(default=text("gemma2", query_pre_attn_scalar=16)),
    "gemma3_text": variants(
        sliding=text("gemma3_text", sliding_window=8, sliding_window_pattern=3, query_pre_attn_scalar=16),
        four_bits=text("gemma3_text", sliding_window=8, sliding_window_pattern=3, query_pre_attn_scalar=16, bits=4),
    ),
    "glm": variants(untied=text("glm", attention_bias=True), tied=text("glm", tied=True)),
    "glm4": variants(default=text("glm4", attention_bias=True, partial_rotary_factor=0.5)),
    "gpt2": variants(default={"model_type": "gpt2", "vocab_size": 128, "n_ctx": 256, **GPT_SIZES}),
    "gpt_bigcode": variants(
        tied={"model_type": "gpt_bigcode", "vocab_size": 128, "n_inner": 96, **GPT_SIZES},
        untied={
            "model_type": "gpt_bigcode",
            "vocab_size": 128,
            "n_inner": 96,
            "tie_word_embeddings": False,
            "multi_query": False,
            **GPT_SIZES,
        },
    ),
    "gpt_neox": variants(
        parallel=text("gpt_neox", layer_norm_eps=1e-5, rotary_emb_base=10000, rotary_pct=0.25, heads=(4, 4)),
        sequential=text(
            "gpt_neox",
            layer_norm_eps=1e-5,
            rotary_emb_base=10000,
            rotary_pct=0.25,
            heads=(4, 4),
            use_parallel_residual=False,
        ),
    ),
    "gptj": variants(default={"model_type": "gptj", "vocab_size": 128, "rotary_dim": 8, **GPT_SIZES}),
    "granite": variants(
        tied=text(
            "granite",
            logits_scaling=4.0,
            attention_multiplier=0.25,
            embedding_multiplier=3.0,
            residual_multiplier=0.5,
            attention_bias=False,
            mlp_bias=False,
            tied=True,
        ),
        untied=text(
            "granite",
            logits_scaling=4.0,
            attention_multiplier=0.25,
            embedding_multiplier=3.0,
            residual_multiplier=0.5,
            attention_bias=True,
            mlp_bias=True,
        ),
    ),
    "helium": variants(default=text("helium", attention_bias=False, mlp_bias=False)),
    "hunyuan_v1_dense": variants(
        untied=text("hunyuan_v1_dense", rope_scaling={"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}),
        tied=text("hunyuan_v1_dense", rope_scaling={"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}, tied=True),
    ),
    "internlm2": variants(untied=text("internlm2", bias=False), tied=text("internlm2", bias=True, tied=True)),
    "internlm3": variants(untied=text("internlm3"), tied=text("internlm3", qkv_bias=True, tied=True)),
    "iquestloopcoder": variants(default=text("iquestloopcoder", loop_num=2, loop_window_size=8)),
    "lille-130m": variants(
        default={
            "model_type": "lille-130m",
            "block_size": 256,
            "layer_norm_eps": 1e-5,
            "n_embd": 64,
            "n_head": 4,
            "n_kv_heads": 2,
            "n_layer": 7,
            "rope_theta": 10000.0,
            "vocab_size": 128,
        },
    ),
    "llama": variants(
        tied=text("llama", tied=True),
        untied=text("llama", rope_scaling=LLAMA3_ROPE),
        sliding=sliding("llama"),
        alias_mistral=text("mistral"),
        four_bits=text("llama", bits=4, tied=True),
        eight_bits=text("llama", bits=8),
        mixed_bits=text("llama", bits=4, mixed={"model.embed_tokens": 8, "model.layers.3.mlp.down_proj": 8}),
    ),
    "mimo": variants(default=text("mimo", num_nextn_predict_layers=1)),
    "minicpm": variants(default=text("minicpm", dim_model_base=32, scale_depth=1.4, scale_emb=12.0)),
    "minicpm3": variants(
        default=text(
            "minicpm3",
            dim_model_base=32,
            scale_depth=1.4,
            scale_emb=12.0,
            q_lora_rank=24,
            kv_lora_rank=16,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            heads=(4, 4),
            rope_scaling={
                "type": "longrope",
                "long_factor": [1.0] * 4,
                "short_factor": [1.0] * 4,
                "original_max_position_embeddings": 128,
            },
        ),
    ),
    "ministral3": variants(
        full=text(
            "ministral3",
            rope_parameters={
                "rope_theta": 10000.0,
                "rope_type": "default",
                "llama_4_scaling_beta": 0.1,
                "original_max_position_embeddings": 16,
            },
        ),
        sliding=sliding(
            "ministral3",
            tied=True,
            rope_parameters={
                "rope_theta": 10000.0,
                "rope_type": "default",
                "llama_4_scaling_beta": 0.1,
                "original_max_position_embeddings": 16,
            },
        ),
    ),
    "muse_glimmer": variants(
        sliding=text("muse_glimmer", sliding_window=8), tied=text("muse_glimmer", sliding_window=8, tied=True)
    ),
    "nanbeige": variants(default=text("nanbeige"), looped=text("nanbeige", num_loops=2)),
    "nanochat": variants(default=text("nanochat", heads=(4, 4))),
    "nemotron": variants(default=text("nemotron", hidden_act="relu2", norm_eps=1e-5)),
    "nemotron-nas": variants(
        default=text(
            "nemotron-nas",
            block_configs=[
                {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0}},
                {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.5}},
                {"attention": {"n_heads_in_group": 2}, "ffn": {"no_op": True}},
                {"attention": {"replace_with_linear": True}, "ffn": {"ffn_mult": 1.0}},
                {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.0}},
                {"attention": {"no_op": True}, "ffn": {"replace_with_linear": True}},
                {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.0}},
            ],
        ),
    ),
    "olmo": variants(
        default={
            "model_type": "olmo",
            "d_model": 64,
            "n_layers": 7,
            "mlp_hidden_size": 96,
            "n_heads": 4,
            "vocab_size": 128,
            "embedding_size": 128,
        },
    ),
    "olmo2": variants(untied=text("olmo2"), tied=text("olmo2", tied=True)),
    "olmo3": variants(sliding=sliding("olmo3"), four_bits=sliding("olmo3", bits=4)),
    "openelm": variants(
        default={
            "model_type": "openelm",
            "head_dim": 16,
            "num_transformer_layers": 7,
            "model_dim": 64,
            "vocab_size": 128,
            "ffn_dim_divisor": 16,
            "num_query_heads": [2, 2, 4, 4, 4, 4, 8],
            "num_kv_heads": [1, 1, 2, 2, 2, 2, 4],
            "ffn_multipliers": [0.5, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0],
        },
    ),
    "phi": variants(default=text("phi", layer_norm_eps=1e-5, heads=(4, 4), partial_rotary_factor=0.5)),
    "phi3": variants(
        untied=text("phi3"),
        tied=text("phi3", tied=True),
        long_rope=text(
            "phi3",
            rope_scaling={"type": "longrope", "long_factor": [1.5] * 8, "short_factor": [1.0] * 8},
            original_max_position_embeddings=64,
        ),
        four_bits=text("phi3", bits=4),
    ),
    "phi3small": variants(
        default=text(
            "phi3small",
            vocab_size=100352,  # the model writes to the logits of its tokenizer's unused ids
            dense_attention_every_n_layers=2,
            ff_intermediate_size=96,
            gegelu_limit=20.0,
            layer_norm_epsilon=1e-5,
        ),
    ),
    "plamo": variants(default=text("plamo", n_shared_head=2)),
    "plamo3": variants(sliding=text("plamo3", window_size=8, sliding_window_pattern=4, tied=True)),
    "qwen": variants(
        default=text("qwen", kv_channels=16, layer_norm_epsilon=1e-6, heads=(4, 4), intermediate_size=192)
    ),
    "qwen2": variants(
        tied=text("qwen2", tied=True),
        untied=text("qwen2"),
        four_bits=text("qwen2", bits=4),
        eight_bits=text("qwen2", bits=8, tied=True),
    ),
    "qwen3": variants(
        tied=text("qwen3", tied=True),
        untied=text("qwen3"),
        four_bits=text("qwen3", bits=4, tied=True),
    ),
    "seed_oss": variants(untied=text("seed_oss", attention_bias=True), tied=text("seed_oss", tied=True)),
    "smollm3": variants(untied=text("smollm3"), tied=text("smollm3", tied=True, no_rope_layer_interval=3)),
    "spark2_5": variants(
        sliding=text(
            "spark2_5",
            sliding_window=8,
            tied=True,
            rope_parameters={
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
                "full_attention": {"rope_theta": 100000.0, "rope_type": "default", "partial_rotary_factor": 0.5},
            },
        ),
    ),
    "stablelm": variants(
        sequential=text("stablelm", use_qkv_bias=True, partial_rotary_factor=0.25, layer_norm_eps=1e-5),
        parallel=text(
            "stablelm",
            use_qkv_bias=False,
            partial_rotary_factor=0.25,
            layer_norm_eps=1e-5,
            use_parallel_residual=True,
            qk_layernorm=True,
        ),
    ),
    "starcoder2": variants(tied=text("starcoder2", tied=True), untied=text("starcoder2")),
    "talkie": variants(default=text("talkie", heads=(4, 4))),
    "telechat3": variants(untied=text("telechat3"), tied=text("telechat3", tied=True, mlp_bias=True)),
    "youtu_llm": variants(
        tied=text(
            "youtu_llm",
            heads=(4, 4),
            kv_lora_rank=16,
            q_lora_rank=24,
            qk_rope_head_dim=8,
            v_head_dim=16,
            qk_nope_head_dim=16,
            tied=True,
        ),
        untied=text(
            "youtu_llm",
            heads=(4, 4),
            kv_lora_rank=16,
            q_lora_rank=None,
            qk_rope_head_dim=8,
            v_head_dim=16,
            qk_nope_head_dim=16,
        ),
    ),
}
