"""What there is no plan for, whatever the memory: said in one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.models.tensor_mode.refusal import in_short, with_numbers
from runtime.planning.values import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.models.layout import ModelLayout
    from runtime.planning.places import Pins, PlanNode

MOST_CONTEXT_TOKENS = 100_000_000
_MOST_REASONS = 4
"""So many are said in one sentence."""


def refuse_inputs(layout: ModelLayout, nodes: Sequence[PlanNode], context: int, pins: Pins) -> Refusal | None:
    """What is wrong with a question, before any split is looked at."""
    if not nodes:
        return Refusal("There is no node to run the model on. Start Pomona on at least one Mac.")
    if not layout.layer_bytes:
        return Refusal(f"{layout.name} has no layers to share. Choose another model.")
    seen: dict[str, str] = {}
    for node in nodes:
        if node.node_id in seen:
            return Refusal(f"{node.name} is named twice: give each node once.")
        seen[node.node_id] = node.name
    if not 0 <= context <= MOST_CONTEXT_TOKENS:
        return Refusal(f"A context of {context} tokens is more than any model has.")
    grouped = [node_id for group in pins.groups for node_id in group]
    if len(set(grouped)) < len(grouped) or not seen.keys() >= set(grouped):
        return Refusal("A node can be in one group only, and has to be in reach: choose the groups again.")
    return None


def refuse_split(split: Sequence[int], layer_count: int, node_count: int, model: str) -> Refusal | None:
    """What is wrong with the numbers of a split by hand, or None."""
    shown = ",".join(map(str, split))
    if len(split) != node_count:
        return Refusal(
            f"The split {shown} names {_count(len(split), 'part')}, but there are {_count(node_count, 'node')}: "
            "give one number of layers for each node (0 leaves a node out)."
        )
    if any(count < 0 for count in split):
        return Refusal(f"The split {shown} has a negative number of layers.")
    if sum(split) != layer_count:
        return Refusal(
            f"The split {shown} adds up to {sum(split)} layers, but {model} has {layer_count}: "
            "change the numbers so that every layer has one node."
        )
    return None


def refuse_tensor(layout: ModelLayout, rank_count: int) -> Refusal | None:
    """Why ``rank_count`` ranks cannot share each layer, or None."""
    reason = tensor_reason(layout.tensor_refusals, rank_count)
    return Refusal(reason) if reason else None


def tensor_reason(refusals: Sequence[str], rank_count: int) -> str:
    """The same from the refusals for groups of 2, 3, … ranks, empty where there is none; empty if they can."""
    if rank_count == 1:
        return ""
    most = len(refusals) + 1
    if rank_count > most:
        return f"Tensor mode shares layers among at most {most} nodes; choose fewer nodes or pipeline mode."
    reason = refusals[rank_count - 2]
    works = [str(count) for count, refusal in enumerate(refusals, 2) if not refusal]
    return with_numbers(reason, _or(works)) if reason and works else reason


class TensorSize(msgspec.Struct, frozen=True):
    """A number of nodes that could share every layer."""

    nodes: int
    refusal: str = ""
    """Why they cannot, in a few words; empty if they can."""


def tensor_sizes(layout: ModelLayout, most: int) -> tuple[TensorSize, ...]:
    """Every number of nodes from 2 to ``most``, and whether so many can share the layers of the model."""
    return tuple(
        TensorSize(nodes, in_short(refusal, layout.name))
        for nodes, refusal in enumerate(layout.tensor_refusals[: most - 1], 2)
    )


def tensor_sizes_words(layout: ModelLayout, most: int) -> str:
    """The same for a person: ``Tensor mode works over 2 or 4 nodes; not over 3: 64 attention heads, which …``."""
    sizes = tensor_sizes(layout, most)
    works = [str(size.nodes) for size in sizes if not size.refusal]
    reasons = {size.nodes: size.refusal for size in sizes if size.refusal}
    if not works:
        return f"Tensor mode does not work: {next(iter(reasons.values()), 'there is only one node')}."
    said = [f"not over {nodes}: {reason}" for nodes, reason in list(reasons.items())[:_MOST_REASONS]]
    if len(reasons) > len(said):
        said.append(f"{len(reasons) - len(said)} other numbers do not divide either")
    return "; ".join([f"Tensor mode works over {_or(works)} nodes", *said]) + "."


def _or(words: Sequence[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
