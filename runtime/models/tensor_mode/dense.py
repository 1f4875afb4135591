"""What is shared in models whose layers all have a dense perceptron, by model type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.models.tensor_mode.parts import Sharing, attention, latent_attention, mlp
from runtime.models.tensor_mode.peculiar import (
    four_times,
    gpt_bigcode_attention,
    heads_by_layer,
    lille_features,
    openelm_features,
    qwen_features,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN = (attention(), mlp())
EVEN_HEADS = (attention(size=""), mlp())
"""As plain, but the hidden size alone decides how large a head is, whatever ``head_dim`` says."""

DENSE: Mapping[str, Sharing] = {
    "apertus": Sharing(EVEN_HEADS),
    "cohere": Sharing(
        EVEN_HEADS,
        {"hidden_size": 8192, "intermediate_size": 22528, "num_attention_heads": 64, "num_key_value_heads": 64},
    ),
    "cohere2": Sharing(
        PLAIN,
        {"hidden_size": 4096, "head_dim": 128, "intermediate_size": 14336}
        | {"num_attention_heads": 32, "num_key_value_heads": 8},
    ),
    "ernie4_5": Sharing(PLAIN),
    "exaone4": Sharing(PLAIN),
    "gemma": Sharing(PLAIN),
    "gemma2": Sharing(PLAIN),
    "gemma3_text": Sharing(
        PLAIN,
        {"hidden_size": 1152, "intermediate_size": 6912, "head_dim": 256}
        | {"num_attention_heads": 4, "num_key_value_heads": 1},
    ),
    "glm": Sharing(PLAIN),
    "glm4": Sharing(PLAIN),
    "gpt2": Sharing(
        (
            attention("c_proj", heads="n_head", key_value="", size="", width="n_embd"),
            four_times("n_embd", "c_proj"),
        )
    ),
    "gpt_bigcode": Sharing((gpt_bigcode_attention, mlp("n_inner", "c_proj")), {"multi_query": True}),
    "gpt_neox": Sharing(
        (attention("dense", key_value="", size=""), four_times("hidden_size", "dense_4h_to_h")),
    ),
    "gptj": Sharing(
        (
            attention("out_proj", heads="n_head", key_value="", size="", width="n_embd"),
            four_times("n_embd", "fc_out"),
        ),
        {"n_embd": 4096, "n_head": 16},
    ),
    "granite": Sharing(EVEN_HEADS),
    "helium": Sharing(EVEN_HEADS),
    "hunyuan_v1_dense": Sharing(PLAIN),
    "internlm2": Sharing((attention("wo", size=""), mlp(projection="w2"))),
    "internlm3": Sharing(EVEN_HEADS),
    "iquestloopcoder": Sharing(PLAIN),
    "lille-130m": Sharing(
        (
            attention("out_proj", heads="n_head", key_value="n_kv_heads", size="", width="n_embd"),
            lille_features,
        )
    ),
    "llama": Sharing(PLAIN),
    "llama4_text": Sharing((attention(), mlp("intermediate_size_mlp"))),
    "mimo": Sharing(EVEN_HEADS),
    "minicpm": Sharing(EVEN_HEADS),
    "minicpm3": Sharing((latent_attention(size=""), mlp())),
    "ministral3": Sharing(PLAIN),
    "muse_glimmer": Sharing(
        PLAIN,
        {"intermediate_size": 19968, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128},
    ),
    "nanbeige": Sharing(PLAIN),
    "nanochat": Sharing(
        (attention("c_proj", size=""), mlp(projection="c_proj")),
        {"hidden_size": 1280, "num_attention_heads": 10, "num_key_value_heads": 10, "intermediate_size": 5120},
    ),
    "nemotron": Sharing(PLAIN),
    "olmo2": Sharing(PLAIN),
    "olmo3": Sharing(PLAIN),
    "openelm": Sharing((heads_by_layer("num_query_heads", "num_kv_heads", "out_proj"), openelm_features)),
    "phi": Sharing(
        (attention("dense", size=""), mlp(projection="fc2")),
        {"hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 10240},
    ),
    "phi3": Sharing(EVEN_HEADS),
    "plamo3": Sharing(
        PLAIN,
        {"num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 13312},
    ),
    "qwen": Sharing(
        (attention("c_proj", key_value="", size="kv_channels"), qwen_features),
        {"num_attention_heads": 16, "kv_channels": 128, "intermediate_size": 11008},
    ),
    "qwen2": Sharing(EVEN_HEADS),
    "qwen3": Sharing(PLAIN),
    "seed_oss": Sharing(PLAIN),
    "smollm3": Sharing(PLAIN),
    "spark2_5": Sharing((attention("out_proj"), mlp())),
    "stablelm": Sharing(EVEN_HEADS),
    "starcoder2": Sharing((attention(size=""), mlp(projection="c_proj"))),
    "talkie": Sharing(
        (attention("attn_resid", key_value=""), mlp(projection="mlp_resid")),
        {"num_attention_heads": 40, "head_dim": 128, "intermediate_size": 13696},
    ),
    "telechat3": Sharing(PLAIN),
    "youtu_llm": Sharing(
        (latent_attention(), mlp()), {"intermediate_size": 6144, "num_attention_heads": 16, "v_head_dim": 128}
    ),
}
