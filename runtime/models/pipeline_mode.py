"""Which models mlx-lm cannot run, and which cannot be split into stages, from ``config.json`` alone. Pure.

Anything else is split between any two layers: what a layer hands on besides the hidden state crosses with it
(``runtime/engine/model_handovers.py``). So there is no boundary that is forbidden, only models that have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.models.tensor_mode.types import ALIASES, LEFT_OUT, SHARINGS, WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_TYPES = frozenset({*ALIASES, *LEFT_OUT, *SHARINGS, *WRAPPERS})
"""All that mlx-lm 0.32.2 has (``mlx_lm/models/*.py`` and ``MODEL_REMAPPING``); a test compares."""


def unknown_model(config: Mapping[str, Any], name: str) -> str:
    """One sentence that says why mlx-lm cannot run this model, or nothing if it can."""
    model_type = config.get("model_type")
    if config.get("model_file"):
        return f"{name} brings program code of its own ({config['model_file']}), which Pomona does not run."
    if model_type == "olmo":
        return f"{name} needs the package ai2-olmo, which Pomona does not bring: choose OLMo 2 or a later one."
    if model_type not in MODEL_TYPES:
        return f"{name} is of the type {model_type}, which mlx-lm does not know: choose another model."
    return ""


def pipeline_refusal(config: Mapping[str, Any], name: str) -> str:
    """One sentence that says why this model cannot be split into stages, or nothing if it can."""
    rounds = _rounds(config)
    if rounds == 1:
        return ""
    return (
        f"{name} sends every token through its layers {rounds} times, and a pipeline does so once: "
        "use tensor mode or one node."
    )


def _rounds(config: Mapping[str, Any]) -> int:
    """How often a token passes through all layers."""
    if config.get("model_type") == "iquestloopcoder":
        return 2  # whatever loop_num says, in mlx-lm
    if config.get("model_type") == "nanbeige":
        weights = config.get("loop_loss_weights")
        rounds = len(weights) + 1 if isinstance(weights, list) and weights else config.get("num_loops", 1)
        return rounds if isinstance(rounds, int) and rounds > 0 else 1
    return 1
