"""What a check of a split found: the object that ``pomona check --json`` prints, and that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.planning.values import Mode  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from runtime.planning.values import Plan


class CheckResult(msgspec.Struct, frozen=True):
    """What a check found, or why there was none."""

    model: str
    split: tuple[int, ...]
    """Layers of each rank, as :func:`split_of` has them."""
    mode: Mode
    versions: dict[str, str]
    identical: bool = False
    """Pipeline: bit for bit. Tensor: equal tokens, and logits as near as the weights' dtype allows."""
    max_abs_difference: float | None = None
    """The largest between two logits."""
    prefill_tokens: int = 0
    decode_tokens: int = 0
    refusal: str = ""


def split_of(plan: Plan) -> tuple[int, ...]:
    """Layers of each stage, or of each rank in tensor mode: all of them."""
    return tuple(stage.layer_count for stage in plan.stages for _rank in stage.ranks)


def sentence(result: CheckResult) -> str:
    """The result for a person."""
    if result.refusal:
        return result.refusal
    what = f"{result.model} in {result.mode} mode over {','.join(map(str, result.split))}"
    tokens = f"{result.prefill_tokens} prompt tokens and {result.decode_tokens} more"
    if result.identical:
        how = "bit for bit" if result.max_abs_difference == 0 else f"logits within {result.max_abs_difference:.2g}"
        return f"{what} is the whole model: {how}, {tokens}."
    apart = "NaN" if result.max_abs_difference is None else f"{result.max_abs_difference:.3g}"
    return f"{what} is NOT the whole model: logits differ by {apart} ({tokens})."
