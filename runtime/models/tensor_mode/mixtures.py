"""What is shared in models with mixtures of experts or with linear attention, by model type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.models.tensor_mode.parts import (
    Sharing,
    after_the_first,
    attention,
    delta_net,
    every_so_often,
    experts,
    features,
    latent_attention,
    layered,
    listed,
    mlp,
    must_have,
    shared_experts,
)
from runtime.models.tensor_mode.peculiar import (
    bailing_shared,
    dbrx_parts,
    enumerated,
    ernie_experts,
    ernie_kinds,
    four_times,
    gemma4_attention,
    granite_hybrid_parts,
    if_set,
    index_heads,
    interleaved,
    kimi_linear_heads,
    laguna_attention,
    laguna_kinds,
    minimax_kinds,
    other_heads,
    output_groups,
    qwen3_5_attention,
    sliding_heads,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_N_SHARED = shared_experts("moe_intermediate_size", "n_shared_experts")
_NUM_SHARED = shared_experts("moe_intermediate_size", "num_shared_experts")
_OWN_SHARED = shared_experts("shared_expert_intermediate_size")

_DEEPSEEK_LAYERS = layered(after_the_first(), mlp(), experts(), _N_SHARED)
_DEEPSEEK_OF_MLX_LM = layered(after_the_first(), mlp(), experts(), must_have("n_shared_experts", _N_SHARED))
_DEEPSEEK = Sharing(
    (latent_attention(), _DEEPSEEK_OF_MLX_LM),
    {"num_attention_heads": 32, "v_head_dim": 128, "intermediate_size": 11008, "moe_intermediate_size": 1407}
    | {"num_hidden_layers": 30},
)
_GLM4_MOE = Sharing((attention(), _DEEPSEEK_OF_MLX_LM))
_LONGCAT = Sharing((latent_attention(), features("ffn_hidden_size"), experts("expert_ffn_hidden_size")))
_QWEN3_5 = Sharing(
    (
        qwen3_5_attention,
        delta_net,
        layered(lambda numbers: [bool(numbers.get("num_experts"))], mlp(), experts(), _OWN_SHARED),
    ),
    {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
    | {"linear_num_value_heads": 64, "linear_num_key_heads": 16, "linear_value_head_dim": 128}
    | {"vocab_size": 151936},
    divides_head=True,
)

MIXTURES: Mapping[str, Sharing] = {
    "Klear": Sharing((attention(size=""), layered(every_so_often, mlp(), experts(), _N_SHARED))),
    "afmoe": Sharing(
        (attention(), layered(after_the_first("num_experts", "num_dense_layers"), mlp(), experts(), _NUM_SHARED)),
        {"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 1024, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 64, "num_experts": 128}
        | {"num_shared_experts": 1, "num_dense_layers": 2},
    ),
    "bailing_moe": Sharing(
        (attention("dense", size=""), layered(after_the_first("num_experts"), mlp(), experts(), bailing_shared)),
        {"moe_router_enable_shared_expert": True},
    ),
    "dbrx": Sharing((dbrx_parts,)),
    "deepseek": Sharing(
        (attention(size=""), _DEEPSEEK_LAYERS),
        {"hidden_size": 4096, "intermediate_size": 11008, "moe_intermediate_size": 1407, "num_hidden_layers": 30}
        | {"num_attention_heads": 32, "num_key_value_heads": 32},
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
    "deepseek_v41": Sharing(
        (output_groups, experts(), shared_experts("moe_intermediate_size")),
        {"num_attention_heads": 64, "o_groups": 8, "o_lora_rank": 1024, "moe_intermediate_size": 2304},
    ),
    "dots1": Sharing((attention(), _DEEPSEEK_LAYERS)),
    "ernie4_5_moe": Sharing((attention(), layered(ernie_kinds, mlp(), ernie_experts))),
    "exaone_moe": Sharing((attention(), layered(listed("is_moe_layer"), mlp(), experts(), _NUM_SHARED))),
    "gemma4_text": Sharing(
        (gemma4_attention, mlp(), if_set("enable_moe_block", experts())),
        {"intermediate_size": 6144, "num_attention_heads": 8, "head_dim": 256, "global_head_dim": 512}
        | {"num_key_value_heads": 1},
    ),
    "glm4_moe": _GLM4_MOE,
    "glm4_moe_lite": Sharing(
        _DEEPSEEK.parts,
        {"intermediate_size": 10240, "moe_intermediate_size": 1536, "num_hidden_layers": 47, "v_head_dim": 256}
        | {"num_attention_heads": 20, "n_shared_experts": 1, "n_routed_experts": 64, "first_k_dense_replace": 1},
    ),
    "glm_moe_dsa": Sharing(_DEEPSEEK.parts),
    "gpt_oss": Sharing(
        (attention(), experts("intermediate_size")),
        {"intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8},
    ),
    "granitemoe": Sharing((attention(size=""), experts("intermediate_size"))),
    "granitemoehybrid": Sharing((granite_hybrid_parts,)),
    "kimi_k3": Sharing(
        (
            latent_attention(),
            kimi_linear_heads,
            layered(after_the_first("num_experts"), mlp(), experts(), _NUM_SHARED),
        ),
        {"num_hidden_layers": 93, "num_attention_heads": 96, "intermediate_size": 33792},
    ),
    "laguna": Sharing(
        (laguna_attention, layered(laguna_kinds, mlp(), experts(), _OWN_SHARED)),
        {"intermediate_size": 8192, "num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 8}
        | {"head_dim": 128, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512},
    ),
    "llama4": Sharing(
        (
            attention(),
            layered(
                interleaved,
                mlp("intermediate_size_mlp"),
                experts("intermediate_size"),
                shared_experts("intermediate_size"),
            ),
        )
    ),
    "longcat_flash": _LONGCAT,
    "longcat_flash_ngram": _LONGCAT,
    "mellum": Sharing((attention(), experts())),
    "mimo_v2_flash": Sharing(
        (
            attention(size="v_head_dim"),
            sliding_heads,
            layered(listed("moe_layer_freq", 1), mlp(), experts(), _N_SHARED),
        )
    ),
    "minimax": Sharing((attention(), experts("intermediate_size"))),
    "minimax_m3_vl": Sharing(
        (
            attention(),
            index_heads,
            layered(
                minimax_kinds,
                mlp("dense_intermediate_size"),
                experts("intermediate_size"),
                shared_experts("shared_intermediate_size"),
            ),
        ),
        {"intermediate_size": 3072, "dense_intermediate_size": 12288, "shared_intermediate_size": 3072}
        | {"num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128},
    ),
    "mistral4": Sharing((latent_attention(), _DEEPSEEK_LAYERS)),
    "mixtral": Sharing(
        (attention(size=""), experts("intermediate_size")),
        {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8},
    ),
    "olmoe": Sharing((attention(), experts("intermediate_size"))),
    "phimoe": Sharing(
        (attention(size=""), experts("intermediate_size")),
        {"hidden_size": 4096, "intermediate_size": 6400, "num_attention_heads": 32, "num_key_value_heads": 8},
    ),
    "phixtral": Sharing(
        (
            attention("out_proj", heads="num_heads", key_value="", size="", width="model_dim"),
            four_times("model_dim", "fc2", "features in each expert"),
        ),
        {"model_dim": 2560, "num_heads": 32},
    ),
    "qwen2_moe": Sharing((attention(size=""), experts(), _OWN_SHARED)),
    "qwen3_5": _QWEN3_5,
    "qwen3_5_moe": _QWEN3_5,
    "qwen3_moe": Sharing((attention(), layered(every_so_often, mlp(), experts()))),
    "qwen3_next": Sharing((attention(), delta_net, layered(every_so_often, mlp(), experts(), _OWN_SHARED))),
    "solar_open": _GLM4_MOE,
    "step3p5": Sharing(
        (
            attention(key_value="num_attention_groups"),
            other_heads,
            layered(enumerated, mlp(), experts(), shared_experts("share_expert_dim")),
        ),
        {"moe_intermediate_size": 1280, "share_expert_dim": 1280},
    ),
}
