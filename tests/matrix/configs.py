"""Tiny configurations for every model type of mlx-lm: what the support matrix is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.matrix.dense import DENSE
from tests.matrix.experts import EXPERT_TYPES
from tests.matrix.hybrid import HYBRID_TYPES
from tests.matrix.wrappers import WRAPPER_TYPES

if TYPE_CHECKING:
    from tests.matrix.variant import Config, Variants

CONFIGS: dict[str, Variants] = dict(
    sorted({**DENSE, **EXPERT_TYPES, **HYBRID_TYPES, **WRAPPER_TYPES}.items(), key=lambda item: item[0].lower())
)
"""By the module of mlx-lm that runs them, then by what sets the variants of one type apart."""


def all_variants() -> list[tuple[str, str, Config]]:
    """Every configuration with its type and its variant's name."""
    return [(name, variant, config) for name, its in CONFIGS.items() for variant, config in its.items()]
