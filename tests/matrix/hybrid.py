"""Tiny configurations of models that mix attention with recurrent layers, or have no attention at all."""

from __future__ import annotations

from tests.matrix.experts import BAILING, EXPERTS, MLA
from tests.matrix.variant import Config, text, variants

FULL_EVERY_THIRD = ["linear_attention", "linear_attention", "full_attention"] * 2 + ["linear_attention"]
DELTA_NET: Config = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
NEXT: Config = {
    **EXPERTS,
    **DELTA_NET,
    "shared_expert_intermediate_size": 32,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.5,
}
MAMBA: Config = {
    "model_type": "mamba",
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "state_size": 8,
    "num_hidden_layers": 7,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_rank": 4,
}
MAMBA2: Config = {
    "model_type": "mamba2",
    "num_heads": 8,
    "head_dim": 16,
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "state_size": 16,
    "num_hidden_layers": 7,
    "layer_norm_epsilon": 1e-5,
    "conv_kernel": 4,
    "n_groups": 1,
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_limit": [0.0, 10.0],
    "time_step_rank": "auto",
}
GRANITE: Config = {
    "attention_bias": False,
    "embedding_multiplier": 3.0,
    "attention_multiplier": 0.25,
    "logits_scaling": 4.0,
    "residual_multiplier": 0.5,
    "layer_types": ["mamba", "mamba", "attention", "mamba", "mamba", "attention", "mamba"],
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_proj_bias": False,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_n_groups": 1,
    "mamba_conv_bias": True,
}
NEMOTRON: Config = {
    "attention_bias": False,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "mamba_proj_bias": False,
    "ssm_state_size": 16,
    "conv_kernel": 4,
    "n_groups": 2,
    "mlp_bias": False,
    "layer_norm_epsilon": 1e-5,
    "use_bias": False,
    "use_conv_bias": True,
}
LFM: Config = {
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv"],
}
LFM2: Config = {
    **LFM,
    "block_dim": 64,
    "block_ff_dim": 96,
    "block_multiple_of": 16,
    "block_ffn_dim_multiplier": 1.0,
    "block_auto_adjust_ff_dim": True,
}
KIMI_LINEAR: Config = {
    "full_attn_layers": [4],
    "kda_layers": [1, 2, 3, 5, 6, 7],
    "num_heads": 4,
    "head_dim": 16,
    "short_conv_kernel_size": 4,
}
KIMI_K3: Config = {
    "linear_attn_config": KIMI_LINEAR,
    **MLA,
    "mla_use_output_gate": True,
    "num_experts": 4,
    "num_experts_per_token": 2,
    "num_shared_experts": 1,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "activation_situ_beta": 1.5,
}
HYBRID_TYPES = {
    "baichuan_m1": variants(
        full_first=text("baichuan_m1", sliding_window=8, sliding_window_layers=[1, 2, 4, 5], conv_window=2),
        sliding_first=text("baichuan_m1", sliding_window=8, sliding_window_layers=[0, 6], conv_window=2),
    ),
    "bailing_hybrid": variants(
        default=text(
            "bailing_hybrid", **MLA, **BAILING, layer_group_size=3, group_norm_size=2, routed_scaling_factor=1.5
        ),
    ),
    "bailing_moe_linear": variants(
        default=text("bailing_moe_linear", **BAILING, layer_group_size=3, group_norm_size=2),
    ),
    "bailing_moe_v3": variants(
        default=text(
            "bailing_hybrid",
            architectures=["BailingMoeV3ForCausalLM"],
            **MLA,
            **BAILING,
            layer_group_size=3,
            moe_shared_expert_intermediate_size=32,
            short_conv_kernel_size=4,
        ),
    ),
    "falcon_h1": variants(
        default=text(
            "falcon_h1",
            mamba_d_conv=4,
            mamba_d_head=16,
            mamba_d_ssm=128,
            mamba_d_state=16,
            mamba_n_heads=8,
            tied=True,
        ),
        untied=text(
            "falcon_h1",
            mamba_d_conv=4,
            mamba_d_head=16,
            mamba_d_ssm=128,
            mamba_d_state=16,
            mamba_n_heads=8,
            mamba_rms_norm=True,
        ),
    ),
    "gear": variants(
        default=text(
            "gear",
            sliding_window=8,
            layer_types=[
                "conv_mixer",
                "sliding_attention",
                "full_attention",
                "conv_mixer",
                "sliding_attention",
                "conv_mixer",
                "full_attention",
            ],
            tied=True,
        ),
    ),
    "granitemoehybrid": variants(
        dense=text("granitemoehybrid", **GRANITE, shared_intermediate_size=32, tied=True),
        experts=text(
            "granitemoehybrid", **GRANITE, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=32
        ),
        attention_alone=text(
            "granitemoehybrid", **{**GRANITE, "layer_types": ["attention"] * 7}, shared_intermediate_size=32
        ),
    ),
    "jamba": variants(
        default=text(
            "jamba",
            attn_layer_offset=1,
            attn_layer_period=3,
            expert_layer_offset=1,
            expert_layer_period=2,
            mamba_d_conv=4,
            mamba_d_state=8,
            mamba_expand=2,
            num_experts=4,
            num_experts_per_tok=2,
            tied=True,
        ),
    ),
    "kimi_k3": variants(
        residual_blocks={"model_type": "kimi_k3", "text_config": text("kimi_linear", **KIMI_K3, attn_res_block_size=2)},
        plain={"model_type": "kimi_k3", "text_config": text("kimi_linear", **KIMI_K3)},
    ),
    "kimi_linear": variants(
        default=text(
            "kimi_linear",
            linear_attn_config=KIMI_LINEAR,
            model_max_length=256,
            **{key: value for key, value in MLA.items() if key != "q_lora_rank"},
            mla_use_nope=True,
            num_experts=4,
            num_experts_per_token=2,
            num_shared_experts=1,
            moe_intermediate_size=32,
            first_k_dense_replace=1,
        ),
    ),
    "lfm2": variants(default=text("lfm2", **LFM2), four_bits=text("lfm2", **LFM2, bits=4)),
    "lfm2_moe": variants(
        default=text(
            "lfm2_moe",
            **LFM,
            moe_intermediate_size=32,
            num_experts=4,
            num_experts_per_tok=2,
            norm_topk_prob=True,
            use_expert_bias=True,
            num_dense_layers=2,
        ),
    ),
    "mamba": variants(
        tied=MAMBA,
        untied={**MAMBA, "tie_word_embeddings": False},
        alias_falcon_mamba={**MAMBA, "model_type": "falcon_mamba"},
    ),
    "mamba2": variants(tied={**MAMBA2, "tie_word_embeddings": True}, untied={**MAMBA2, "tie_word_embeddings": False}),
    "nemotron_h": variants(
        dense=text("nemotron_h", **NEMOTRON, hybrid_override_pattern=["-", "M", "M", "*", "-", "M", "*"]),
        experts=text(
            "nemotron_h",
            **NEMOTRON,
            hybrid_override_pattern=["M", "E", "*", "E", "M", "E", "M"],
            moe_intermediate_size=32,
            moe_shared_expert_intermediate_size=32,
            n_group=1,
            n_routed_experts=4,
            n_shared_experts=1,
            topk_group=1,
            num_experts_per_tok=2,
            norm_topk_prob=True,
            routed_scaling_factor=1.5,
        ),
    ),
    "olmo_hybrid": variants(
        untied=text("olmo_hybrid", **DELTA_NET, linear_allow_neg_eigval=True, attention_bias=False),
        tied=text(
            "olmo_hybrid",
            **DELTA_NET,
            linear_allow_neg_eigval=True,
            attention_bias=False,
            layer_types=FULL_EVERY_THIRD,
            tied=True,
        ),
    ),
    "plamo2": variants(
        default=text(
            "plamo2",
            hidden_size_per_head=16,
            attention_window_size=16,
            mamba_d_state=16,
            mamba_d_conv=4,
            mamba_num_heads=4,
            mamba_step=3,
            tied=True,
        ),
        untied=text(
            "plamo2",
            hidden_size_per_head=16,
            attention_window_size=16,
            mamba_d_state=16,
            mamba_d_conv=4,
            mamba_num_heads=4,
            mamba_step=2,
        ),
    ),
    "qwen3_next": variants(
        full_every_fourth=text("qwen3_next", **NEXT),
        full_every_third=text("qwen3_next", **{**NEXT, "full_attention_interval": 3}, tied=True),
        four_bits=text("qwen3_next", **NEXT, bits=4),
    ),
    "recurrent_gemma": variants(
        default=text(
            "recurrent_gemma",
            attention_bias=False,
            conv1d_width=4,
            logits_soft_cap=30.0,
            attention_window_size=8,
            block_types=["recurrent", "recurrent", "attention"],
            heads=(4, 1),
        ),
    ),
    "rwkv7": variants(
        default={
            "model_type": "rwkv7",
            "vocab_size": 128,
            "hidden_size": 64,
            "intermediate_size": 96,
            "norm_eps": 1e-5,
            "head_dim": 16,
            "num_hidden_layers": 7,
            "a_low_rank_dim": 8,
            "v_low_rank_dim": 8,
            "gate_low_rank_dim": 8,
            "decay_low_rank_dim": 8,
        },
    ),
}
