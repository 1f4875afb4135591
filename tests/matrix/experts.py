"""Tiny configurations of mixtures of experts, with plain, grouped, or compressed (MLA) attention."""

from __future__ import annotations

from tests.matrix.dense import SLIDING_PATTERN, sliding
from tests.matrix.variant import Config, text, variants

EXPERTS: Config = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
MLA: Config = {
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "qk_nope_head_dim": 16,
    "heads": (4, 4),
}
DEEPSEEK_V41: Config = {
    "heads": (4, 4),
    "head_dim": 32,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "o_groups": 2,
    "o_lora_rank": 16,
    "moe_intermediate_size": 32,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "sliding_window": 8,
    "hc_mult": 2,
    "hc_sinkhorn_iters": 3,
}
ROUTED: Config = {
    "moe_intermediate_size": 32,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "norm_topk_prob": True,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 1.5,
    "first_k_dense_replace": 1,
}
DEEPSEEK: Config = {**MLA, **ROUTED, "moe_layer_freq": 1, "attention_bias": False}
YARN: Config = {
    "type": "yarn",
    "factor": 4.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "original_max_position_embeddings": 64,
}
INDEXER: Config = {"index_head_dim": 16, "index_n_heads": 2, "index_topk": 8}
LLAMA4_ROPE: Config = {
    "rope_theta": 10000.0,
    "rope_type": "default",
    "llama_4_scaling_beta": 0.1,
    "original_max_position_embeddings": 16,
}
BAILING: Config = {
    "moe_intermediate_size": 32,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "num_shared_experts": 1,
    "norm_topk_prob": True,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
LONGCAT: Config = {
    **{key: value for key, value in MLA.items() if key != "heads"},
    "attention_method": "MLA",
    "zero_expert_type": "identity",
    "ffn_hidden_size": 96,
    "moe_topk": 2,
    "expert_ffn_hidden_size": 32,
    "n_routed_experts": 4,
    "zero_expert_num": 2,
    "num_layers": 7,
    "routed_scaling_factor": 1.5,
    "mla_scale_q_lora": True,
    "mla_scale_kv_lora": True,
    "attention_bias": False,
}
EXPERT_TYPES = {
    "Klear": variants(default=text("Klear", **EXPERTS, attention_bias=False, n_shared_experts=1)),
    "afmoe": variants(
        sliding=sliding(
            "afmoe",
            moe_intermediate_size=32,
            num_experts=4,
            num_experts_per_tok=2,
            num_shared_experts=1,
            num_dense_layers=2,
        ),
        tied=sliding(
            "afmoe",
            moe_intermediate_size=32,
            num_experts=4,
            num_experts_per_tok=2,
            num_shared_experts=1,
            num_dense_layers=1,
            tied=True,
        ),
    ),
    "bailing_moe": variants(untied=text("bailing_moe", **BAILING), tied=text("bailing_moe", **BAILING, tied=True)),
    "dbrx": variants(
        default={
            "model_type": "dbrx",
            "vocab_size": 128,
            "d_model": 64,
            "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
            "n_layers": 7,
            "n_heads": 4,
        },
    ),
    "deepseek": variants(
        default=text("deepseek", **{**ROUTED, "first_k_dense_replace": 2}, moe_layer_freq=1),
    ),
    "deepseek_v2": variants(
        experts=text("deepseek_v2", **DEEPSEEK, rope_scaling=YARN),
        dense=text("deepseek_v2", **MLA, rope_scaling=YARN),
        no_query_rank=text("deepseek_v2", **{**DEEPSEEK, "q_lora_rank": None}, rope_scaling=YARN),
    ),
    "deepseek_v3": variants(
        experts=text("deepseek_v3", **DEEPSEEK),
        grouped=text("deepseek_v3", **{**DEEPSEEK, "n_group": 2, "topk_group": 1}, rope_scaling=YARN),
        four_bits=text("deepseek_v3", **{**DEEPSEEK, "kv_lora_rank": 32, "q_lora_rank": 32}, bits=4),
        alias_kimi_k2=text("kimi_k2", **DEEPSEEK),
    ),
    "deepseek_v32": variants(
        experts=text("deepseek_v32", **DEEPSEEK, **INDEXER),
        sparse_everywhere=text("deepseek_v32", **DEEPSEEK, **{**INDEXER, "index_topk": 4}),
    ),
    "deepseek_v41": variants(
        shared=text(
            "deepseek_v41",
            **DEEPSEEK_V41,
            compress_ratios=[0, 2, 2, 2, 4, 4, 4],
            kv_source_layer_ids=[1, 4],
            index_source_layer_ids=[1, 3, 4, 6],
            candidate_source_layer_id=4,
            candidate_topk_blocks=2,
            candidate_block_size=2,
            index_n_heads=2,
            index_head_dim=32,
            index_topk=4,
        ),
        window_alone=text("deepseek_v41", **DEEPSEEK_V41),
    ),
    "dots1": variants(untied=text("dots1", **ROUTED), tied=text("dots1", **ROUTED, tied=True)),
    "ernie4_5_moe": variants(
        default=text(
            "ernie4_5_moe",
            use_bias=False,
            moe_num_experts=4,
            moe_layer_start_index=1,
            moe_intermediate_size=32,
            moe_k=2,
            moe_num_shared_experts=1,
            tied=True,
        ),
    ),
    "exaone_moe": variants(
        sliding=sliding(
            "exaone_moe",
            moe_intermediate_size=32,
            num_experts=4,
            num_experts_per_tok=2,
            num_shared_experts=1,
            is_moe_layer=[False] + [True] * 6,
        ),
    ),
    "glm4_moe": variants(
        default=text(
            "glm4_moe", **ROUTED, rope_scaling=None, use_qk_norm=True, attention_bias=True, partial_rotary_factor=0.5
        ),
        four_bits=text(
            "glm4_moe",
            **ROUTED,
            rope_scaling=None,
            use_qk_norm=True,
            attention_bias=True,
            partial_rotary_factor=0.5,
            bits=4,
        ),
    ),
    "glm4_moe_lite": variants(default=text("glm4_moe_lite", **DEEPSEEK)),
    "glm_moe_dsa": variants(
        default=text(
            "glm_moe_dsa",
            **DEEPSEEK,
            **INDEXER,
            topk_method="noaux_tc",
            scoring_func="sigmoid",
            rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
        ),
    ),
    "gpt_oss": variants(
        sliding=text(
            "gpt_oss",
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"] * 3 + ["sliding_attention"],
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "original_max_position_embeddings": 64,
            },
        ),
        four_bits=text(
            "gpt_oss",
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"] * 3 + ["sliding_attention"],
            bits=4,
        ),
    ),
    "granitemoe": variants(
        default=text(
            "granitemoe",
            logits_scaling=4.0,
            attention_multiplier=0.25,
            embedding_multiplier=3.0,
            residual_multiplier=0.5,
            attention_bias=False,
            num_local_experts=4,
            num_experts_per_tok=2,
            tied=True,
        ),
    ),
    "hunyuan": variants(
        shared_keys=text(
            "hunyuan",
            attention_bias=False,
            moe_topk=2,
            num_experts=4,
            num_shared_expert=1,
            use_mixed_mlp_moe=True,
            use_qk_norm=True,
            use_cla=True,
            cla_share_factor=2,
            rope_scaling={"alpha": 1000.0, "factor": 1.0, "type": "dynamic"},
            tied=True,
        ),
        own_keys=text(
            "hunyuan",
            attention_bias=False,
            moe_topk=2,
            num_experts=1,
            num_shared_expert=1,
            use_mixed_mlp_moe=False,
            use_qk_norm=False,
            use_cla=False,
            cla_share_factor=2,
            rope_scaling={"alpha": 1000.0, "factor": 1.0, "type": "dynamic"},
            tied=True,
        ),
    ),
    "laguna": variants(
        sliding=sliding(
            "laguna",
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            shared_expert_intermediate_size=32,
            num_attention_heads_per_layer=[4, 4, 2, 4, 4, 2, 4],
        ),
    ),
    "llama4_text": variants(
        default=text(
            "llama4_text", intermediate_size_mlp=96, no_rope_layers=[1, 1, 1, 0, 1, 1, 1], use_qk_norm=True, tied=True
        ),
    ),
    "longcat_flash": variants(default=text("longcat_flash", heads=(4, 4), **LONGCAT)),
    "longcat_flash_ngram": variants(
        default=text(
            "longcat_flash_ngram",
            heads=(4, 4),
            **LONGCAT,
            ngram_vocab_size_ratio=2,
            emb_neighbor_num=3,
            emb_split_num=2,
        ),
    ),
    "mellum": variants(
        sliding=sliding(
            "mellum",
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            norm_topk_prob=True,
            rope_parameters={
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
                "full_attention": {"rope_theta": 100000.0, "rope_type": "default"},
            },
        ),
    ),
    "mimo_v2_flash": variants(
        sliding=text(
            "mimo_v2_flash",
            **ROUTED,
            hybrid_layer_pattern=[0, 1, 1, 0, 1, 1, 0],
            moe_layer_freq=[0, 1, 1, 1, 1, 1, 1],
            add_swa_attention_sink_bias=True,
            add_full_attention_sink_bias=False,
            sliding_window_size=8,
            topk_method="noaux_tc",
            scoring_func="sigmoid",
            layernorm_epsilon=1e-5,
            swa_rope_theta=10000.0,
            swa_num_attention_heads=4,
            swa_num_key_value_heads=4,
            v_head_dim=8,
            swa_head_dim=16,
            swa_v_head_dim=8,
            partial_rotary_factor=0.5,
        ),
    ),
    "minimax": variants(
        default=text("minimax", num_experts_per_tok=2, num_local_experts=4, shared_intermediate_size=32, rotary_dim=8),
    ),
    "mistral4": variants(
        default=text("mistral4", **DEEPSEEK, rope_parameters=LLAMA4_ROPE),
    ),
    "mixtral": variants(
        untied=text("mixtral", num_local_experts=4, num_experts_per_tok=2),
        four_bits=text("mixtral", num_local_experts=4, num_experts_per_tok=2, bits=4, tied=True),
    ),
    "muse_spark": variants(
        default={
            "model_type": "muse_spark",
            "text_config": text(
                "muse_spark",
                post_norm_eps=1e-6,
                rope_parameters={"rope_theta": 10000.0},
                layer_rope_theta=[10000.0, 10000.0, 0.0] * 2 + [10000.0],
                layer_types=SLIDING_PATTERN[:7],
                sliding_window=8,
                final_logit_softcapping=20.0,
                output_multiplier=0.2,
                num_local_experts=4,
                num_experts_per_tok=2,
                moe_hidden_size=64,
                moe_intermediate_size=32,
            ),
        },
    ),
    "olmoe": variants(
        tied=text("olmoe", num_experts=4, num_experts_per_tok=2, tied=True),
        untied=text("olmoe", num_experts=4, num_experts_per_tok=2, norm_topk_prob=True),
    ),
    "phimoe": variants(
        default=text(
            "phimoe",
            num_local_experts=4,
            num_experts_per_tok=2,
            original_max_position_embeddings=64,
            rope_scaling={
                "type": "longrope",
                "long_factor": [1.5] * 8,
                "short_factor": [1.0] * 8,
                "long_mscale": 1.2,
                "short_mscale": 1.1,
                "original_max_position_embeddings": 64,
            },
        ),
    ),
    "phixtral": variants(
        default={
            "model_type": "phixtral",
            "num_vocab": 128,
            "model_dim": 64,
            "num_heads": 4,
            "num_layers": 7,
            "rotary_dim": 8,
            "num_experts_per_tok": 2,
            "num_local_experts": 4,
        },
    ),
    "qwen2_moe": variants(
        default=text("qwen2_moe", **EXPERTS, shared_expert_intermediate_size=32),
    ),
    "qwen3_moe": variants(
        untied=text("qwen3_moe", **EXPERTS),
        some_dense=text("qwen3_moe", **{**EXPERTS, "mlp_only_layers": [0, 3], "decoder_sparse_step": 2}, tied=True),
        four_bits=text("qwen3_moe", **EXPERTS, bits=4),
        mixed_bits=text("qwen3_moe", **EXPERTS, bits=4, mixed={"model.layers.2.mlp.gate": 8, "lm_head": 8}),
    ),
    "solar_open": variants(default=text("solar_open", **ROUTED, partial_rotary_factor=0.5)),
    "step3p5": variants(
        sliding=sliding(
            "step3p5",
            num_attention_groups=2,
            moe_num_experts=4,
            moe_top_k=2,
            moe_intermediate_size=32,
            share_expert_dim=32,
            moe_layers_enum="1,2,3,4,5,6",
            attention_other_setting={"num_attention_heads": 8, "num_attention_groups": 2},
        ),
    ),
}
