"""How the matrix writes configurations: what a model type needs, and nothing that it does not read."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]
Variants = dict[str, Config]

LAYERS = 7
"""Odd, so that no split of it is even."""
VOCABULARY = 128
_GROUP_SIZE = 32


def variants(**configs: Config) -> Variants:
    """The configurations of one model type by what sets them apart."""
    return {name.replace("_", " "): config for name, config in configs.items()}


def text(
    model_type: str,
    *,
    tied: bool = False,
    heads: tuple[int, int] = (4, 2),
    bits: int | None = None,
    mixed: dict[str, int] | None = None,
    **changes: object,
) -> Config:
    """Sizes under the names that most models use. ``heads`` are those of attention and of keys and values.

    ``bits`` quantizes, apart from the modules that ``mixed`` names with bits of their own.
    """
    config: Config = {
        "model_type": model_type,
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "num_hidden_layers": LAYERS,
        "intermediate_size": 96,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 256,
        "rope_theta": 10000.0,
        "tie_word_embeddings": tied,
        **changes,
    }
    if bits is not None:
        # Two quantization groups or more of features, which two ranks can share.
        config |= {
            key: -(-size // (2 * _GROUP_SIZE)) * 2 * _GROUP_SIZE
            for key, size in config.items()
            if key.endswith("intermediate_size")
        }
        named = {module: {"group_size": _GROUP_SIZE, "bits": its} for module, its in (mixed or {}).items()}
        config["quantization"] = {"group_size": _GROUP_SIZE, "bits": bits, **named}
    return config
