"""A group of ranks is refused, in one sentence, unless everything that it divides is known to divide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.models.tensor_mode.refusal import MAX_RANKS, tensor_refusal, tensor_refusals
from runtime.models.tensor_mode.types import ALIASES, LEFT_OUT, SHARINGS, WRAPPERS

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}
QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 5120,
    "num_experts": 512,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
}
QWEN3_5 = {**QWEN3_NEXT, "model_type": "qwen3_5_moe", "vocab_size": 248320}
GPT_OSS = {"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240},
}


def groups(config: dict[str, Any]) -> list[int]:
    """The numbers of ranks that can share the model."""
    return [count for count in range(2, MAX_RANKS + 1) if tensor_refusal(config, count) is None]


def test_the_sentence_names_what_does_not_divide():
    assert tensor_refusal(LLAMA, 3, "Tiny") == (
        "Tiny has 32 attention heads, which 3 nodes cannot share equally; "
        "choose another number of nodes or pipeline mode."
    )


@pytest.mark.parametrize(
    ("config", "possible"),
    [
        (LLAMA, [2, 4, 8]),
        ({**LLAMA, "num_key_value_heads": None}, [2, 4, 8, 16]),
        ({**LLAMA, "num_key_value_heads": 1}, []),
        ({**LLAMA, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536}, [3]),
        ({**LLAMA, "intermediate_size": 14338}, [2]),
        (QWEN3_NEXT, [2]),
        ({**QWEN3_NEXT, "linear_num_key_heads": 15}, []),
        (QWEN3_5, [2, 4, 8, 16]),  # whose key-value heads may be repeated
        ({**QWEN3_5, "vocab_size": 248322}, [2]),
        ({**QWEN3_5, "vocab_size": 248322, "tie_word_embeddings": True}, [2, 4, 8, 16]),
        (GPT_OSS, [2]),  # 2880 features are 90 groups
        (GEMMA3, [2, 4]),  # 8 and 4 heads where nothing is said
    ],
)
def test_which_groups_can_share_a_model(config, possible):
    assert groups(config) == possible


@pytest.mark.parametrize(
    ("quantization", "possible"),
    [
        ({"group_size": 64, "bits": 4}, [2, 4, 8]),  # 14336 / 64 = 224 groups
        ({"group_size": 1024, "bits": 4}, [2]),  # 14 groups
        ({"group_size": 64, "bits": 4, "model.layers.3.mlp.down_proj": {"group_size": 2048, "bits": 8}}, []),
        ({"group_size": 64, "bits": 4, "model.layers.3.mlp.up_proj": {"group_size": 2048, "bits": 8}}, [2, 4, 8]),
        ({"group_size": 64, "bits": 4, "model.layers.3.mlp.down_proj": False}, [2, 4, 8]),
        ({"group_size": 3000, "bits": 4}, [2, 4, 8]),  # does not fit, so these layers stay as they are
        ({"group_size": 16, "bits": 4, "mode": "nvfp4"}, []),
        ({"group_size": 64, "bits": 4, "lm_head": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}, []),
    ],
)
def test_a_quantization_group_is_never_cut(quantization, possible):
    assert groups({**LLAMA, "quantization": quantization}) == possible


@pytest.mark.parametrize(
    ("settings", "possible"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 2048}, []),
        ({"quant_method": "gptq", "bits": 4}, [2, 4, 8]),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, [2, 4, 8]),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, [2, 4, 8]),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, []),
        ({"quant_method": "modelopt"}, []),
        ({"quant_method": "bitnet"}, []),
    ],
)
def test_other_libraries_settings_are_understood_or_refused(settings, possible):
    assert groups({**LLAMA, "quantization_config": settings}) == possible


def test_quantized_activations_are_refused():
    assert "quantized in a way" in (tensor_refusal({**LLAMA, "quantize_activations": True}, 2) or "")


def test_mixtures_without_the_shared_experts_that_mlx_lm_expects_are_refused():
    config = {
        "model_type": "glm4_moe",
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 512,
        "moe_intermediate_size": 256,
        "n_routed_experts": 8,
        "first_k_dense_replace": 1,
    }
    assert "n_shared_experts" in (tensor_refusal(config, 2) or "")
    assert tensor_refusal({**config, "n_shared_experts": 1}, 2) is None
    assert tensor_refusal({**config, "n_routed_experts": None}, 2) is None


@pytest.mark.parametrize("model_type", sorted(LEFT_OUT))
def test_types_that_are_left_out_have_a_reason(model_type):
    assert tensor_refusal({"model_type": model_type}, 2, "Tiny") == (
        f"Tiny has {LEFT_OUT[model_type]}, which tensor mode does not share; use pipeline mode."
    )


@pytest.mark.parametrize(("kinds", "possible"), [(["attention"] * 4, [2, 4]), (["attention", "mamba"] * 2, [])])
def test_granite_4_is_shared_where_it_has_no_mamba_layers(kinds, possible):
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "hidden_size": 512, "intermediate_size": 1024}
    assert groups({"model_type": "granitemoehybrid", "layer_types": kinds, **heads}) == possible


def test_an_unknown_type_is_refused():
    assert tensor_refusal({"model_type": "novelty"}, 2) == (
        "Tensor mode does not know how to share the layers of a novelty model; use pipeline mode."
    )


def test_a_number_that_is_missing_is_named():
    assert tensor_refusal({"model_type": "llama"}, 2, "Tiny") == (
        "Tiny does not say its num_attention_heads in config.json, which tensor mode needs to know; use pipeline mode."
    )


KEYS = (
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "moe_intermediate_size",
    "num_hidden_layers",
    "n_routed_experts",
    "first_k_dense_replace",
    "num_experts",
    "mlp_only_layers",
    "decoder_sparse_step",
    "quantization",
    "quantization_config",
    "text_config",
    "mlp_layer_types",
    "moe_layer_freq",
    "ffn_multipliers",
    "linear_attn_config",
    "moe_layer_start_index",
    "tie_word_embeddings",
)
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "mode"]), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(sorted({*SHARINGS, *WRAPPERS, *ALIASES})),
    st.dictionaries(st.sampled_from(KEYS), NONSENSE, max_size=12),
    st.integers(2, MAX_RANKS),
)
def test_any_config_is_shared_or_refused_with_one_sentence(model_type, config, rank_count):
    reason = tensor_refusal({"model_type": model_type, **config}, rank_count, "Tiny")
    assert reason is None or (reason.endswith(".") and reason.isprintable())
    refusals = tensor_refusals({"model_type": model_type, **config}, "Tiny")
    assert refusals[rank_count - 2] == (reason or "")


@given(st.sampled_from(sorted(SHARINGS)), st.integers(1, 200), st.integers(2, MAX_RANKS))
def test_heads_that_do_not_divide_are_always_refused(model_type, heads, rank_count):
    names = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads")
    config: dict[str, Any] = {**QWEN3_5, "model_type": model_type, **dict.fromkeys(names, heads)}
    config |= {"num_query_heads": [heads], "num_kv_heads": [heads]}
    if heads % rank_count:
        assert tensor_refusal(config, rank_count) is not None
