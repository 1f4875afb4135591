"""Made-up models."""

from __future__ import annotations

import msgspec

from gui.formatting import GIB, MIB
from runtime.models.cache_layout import LayerCache
from runtime.models.layer_figures import ModelFigures
from runtime.models.layout import ModelLayout
from runtime.models.tensor_mode.refusal import tensor_refusals

SMALL_MODEL = ModelLayout(
    name="SmolLM2-135M-Instruct",
    model_type="llama",
    layer_bytes=(int(2.9 * MIB),) * 30,
    embedding_bytes=int(28.1 * MIB),
    head_bytes=2304,
    tied_embedding=True,
    attention_heads=9,
    key_value_heads=3,
    context_tokens=8192,
    layer_divided_bytes=(int(2.89 * MIB),) * 30,
    head_divided_bytes=0,
    tensor_refusals=tensor_refusals(
        {
            "model_type": "llama",
            "hidden_size": 576,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "intermediate_size": 1536,
        },
        "SmolLM2-135M-Instruct",
    ),
    figures=ModelFigures((LayerCache("full", 768),) * 30, 1152, 0.5625, "4-bit"),
)
LARGE_MODEL = ModelLayout(
    name="DeepSeek-V3 4-bit",
    model_type="deepseek_v3",
    layer_bytes=(int(1.4 * GIB),) * 3 + (int(5.35 * GIB),) * 58,
    embedding_bytes=int(0.5 * GIB),
    head_bytes=int(0.5 * GIB),
    tied_embedding=False,
    attention_heads=128,
    key_value_heads=128,
    context_tokens=163840,
    layer_divided_bytes=(int(1.3 * GIB),) * 3 + (int(5.2 * GIB),) * 58,
    head_divided_bytes=0,
    tensor_refusals=tensor_refusals(
        {
            "model_type": "deepseek_v3",
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
        },
        "DeepSeek-V3 4-bit",
    ),
    layer_active_bytes=(int(1.4 * GIB),) * 3 + (int(0.4 * GIB),) * 58,
    figures=ModelFigures((LayerCache("latent", 1152),) * 61, 14336, 0.5625, "4-bit", 8 / 256),
)


def of_layers(count: int, layer_bytes: int) -> ModelLayout:
    """A model of so many equal layers."""
    return msgspec.structs.replace(
        LARGE_MODEL,
        name=f"A model of {count} layers",
        layer_bytes=(layer_bytes,) * count,
        layer_divided_bytes=(layer_bytes,) * count,
        layer_active_bytes=(layer_bytes,) * count,
        figures=ModelFigures((LayerCache("full", 1152),) * count, 14336, 0.5625, "4-bit"),
    )
