"""Which model types tensor mode knows, under all their names, and why it leaves out the others. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.models.tensor_mode.dense import DENSE
from runtime.models.tensor_mode.mixtures import MIXTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.models.tensor_mode.parts import Sharing

SHARINGS: Mapping[str, Sharing] = {**DENSE, **MIXTURES}
"""What is shared, by the type of the language model."""

ALIASES = {
    "deepseek_v41_text": "deepseek_v41",
    "falcon_mamba": "mamba",
    "gemma4_unified": "gemma4",
    "iquestcoder": "llama",
    "joyai_llm_flash": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
    "llava": "mistral3",
    "minimax_m2": "minimax",
    "mistral": "llama",
    "phi-msft": "phixtral",
    "qwen2_5_vl": "qwen2_vl",
    "xverse": "llama",
}
"""``mlx_lm.utils.MODEL_REMAPPING``."""

WRAPPERS = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "kimi_k25": "deepseek_v3",
    "kimi_vl": "deepseek_v3",
    "mistral3": "llama",
    "pixtral": "llama",
    "qwen2_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
}
"""Multimodal types, and the type of the language model inside them."""

_NAMED_INSIDE = frozenset({"ministral3", "mistral4"})
"""Types that a mistral3 holds instead when its ``text_config`` names them."""

_WRAPPER_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "gemma3": {"num_attention_heads": 8, "num_key_value_heads": 4},
    "gemma4": {"num_attention_heads": 8, "num_key_value_heads": 1},
    "pixtral": {"num_attention_heads": 32},
}

LEFT_OUT = {
    **dict.fromkeys(("falcon_h1", "jamba", "mamba", "mamba2", "nemotron_h", "plamo2"), "Mamba layers"),
    **dict.fromkeys(("recurrent_gemma", "rwkv7"), "recurrent layers"),
    **dict.fromkeys(
        ("bailing_hybrid", "bailing_moe_linear", "bailing_moe_v3", "kimi_linear", "olmo_hybrid"),
        "linear attention",
    ),
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm2-vl"), "convolutions in place of attention"),
    **dict.fromkeys(("baichuan_m1",), "convolutions inside its attention"),
    **dict.fromkeys(("afm7", "gemma3n", "hunyuan"), "keys and values that other layers use again"),
    "bitnet": "ternary weights",
    "exaone": "attention that cannot compute some of its heads alone",
    "gear": "layers of several kinds",
    "muse_spark": "attention kernels for Metal alone",
    "nemotron-nas": "layers of many shapes",
    "olmo": "code that is no part of mlx-lm",
    "phi3small": "block-sparse attention",
    "plamo": "queries that each read every key head",
    "prism_hadamard_qwen35": "rotated weights",
}
"""What the other types of mlx-lm have that tensor mode does not share, for a sentence."""


def language_model(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    """The type of a config's language model, the part of the config that describes it, and the wrapper's defaults."""
    model_type = str(config.get("model_type"))
    model_type = ALIASES.get(model_type, model_type)
    inside = config.get("text_config")
    text = inside if isinstance(inside, dict) else config
    if model_type == "mistral3" and text.get("model_type") in _NAMED_INSIDE:
        return str(text["model_type"]), text, {}
    return WRAPPERS.get(model_type, model_type), text, _WRAPPER_DEFAULTS.get(model_type, {})
