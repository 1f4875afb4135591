"""Which weights of a layer one token reads, where a router picks experts for it. Pure.

A file holds experts one by one (``mlp.experts.7.down_proj.weight``) or stacked, the expert first in the shape
(``mlp.switch_mlp.down_proj.weight``). A token visits ``num_experts_per_tok`` of them, and all of what is shared.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.models.safetensors_header import TensorInfo

_VISITED = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "num_selected_experts",
)
_NUMBERED = re.compile(r"(.*?\bexperts)\.(\d{1,5})\.")
_STACKED = re.compile(r"(?:^|\.)(?:\w*experts|switch_\w+)(?:\.|$)")
_SHARED = re.compile(r"(?:^|\.)\w*shared\w*\.")


def experts_per_token(settings: Mapping[str, Any]) -> int:
    """How many experts of a layer a token visits; 0 if the configuration does not say."""
    parts = [settings.get("text_config"), settings, settings.get("ffn_config")]
    for part in parts:
        for name in _VISITED:
            value = _largest(part.get(name)) if isinstance(part, dict) else 0
            if value:
                return value
    return 0


def active_bytes(tensors: Iterable[tuple[str, TensorInfo]], visited: int) -> int:
    """Bytes of a layer that one token reads, of tensors by their names inside the layer. All if nothing is routed."""
    tensors = list(tensors)
    total = sum(tensor.byte_count for _name, tensor in tensors)
    if visited < 1:
        return total
    routed: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for name, tensor in tensors:
        if "expert" not in name and "switch" not in name:
            continue
        if _SHARED.search(name):
            continue
        if member := _NUMBERED.match(name):
            routed[member[1]][int(member[2])] += tensor.byte_count
        elif _STACKED.search(name) and len(tensor.shape) >= 2 and tensor.shape[0] > visited:
            total -= tensor.byte_count - tensor.byte_count * visited // tensor.shape[0]
    for sizes in routed.values():
        if len(sizes) > visited:
            total -= sum(sizes.values()) - sum(sizes.values()) * visited // len(sizes)
    return total


def _largest(value: object) -> int:
    """The number itself, or the largest of a list that has one for each layer."""
    numbers = value if isinstance(value, list) else [value]
    return max((number for number in numbers if isinstance(number, int) and 0 < number < 2**20), default=0)
