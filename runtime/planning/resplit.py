"""Another split for a session that runs: what its nodes have room for, what is to be loaded, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.planning.shares import stage_weight_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from resources.node import NodeResources
    from runtime.models.layout import ModelLayout
    from runtime.planning.values import Plan, StagePlan

USUAL_LOAD_BYTES_PER_SECOND = 1e9
"""Of a node that has not loaded anything yet."""
_REBUILD_SECONDS = 1.0
"""To end the last step, join hops anew and compute running prompts again, whatever is loaded."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What one node has to load."""

    node_id: str
    node_name: str
    layer_count: int
    byte_count: int


@dataclass(frozen=True, slots=True)
class Move:
    """From one plan of a running model to another."""

    loads: tuple[NodeLoad, ...]
    """Of nodes that have to load something, in model order."""
    seconds: float
    """About how long answers pause: the nodes load side by side."""


def nodes_of_session(nodes: Iterable[NodeResources], held_bytes: Mapping[str, int]) -> list[NodeResources]:
    """``nodes`` as another plan of the session may use them: what it holds there (bytes by node id) is free for it."""
    return [
        msgspec.structs.replace(
            node,
            memory_available_bytes=min(
                node.memory_available_bytes + held_bytes.get(node.node_id, 0), node.memory_total_bytes
            ),
        )
        for node in nodes
    ]


def same_split(one: Plan, other: Plan) -> bool:
    """Whether both give every node the same layers."""
    return one.mode == other.mode and _places(one) == _places(other)


def move_between(layout: ModelLayout, now: Plan, then: Plan, load_bytes_per_second: float | None = None) -> Move:
    """What ``then`` needs beyond what the nodes hold of ``now``; the rate is that of one node."""
    rate = load_bytes_per_second or USUAL_LOAD_BYTES_PER_SECOND
    held = {rank.node_id: stage for stage in now.stages for rank in stage.ranks}
    loads = []
    for stage in then.stages:
        for rank in stage.ranks:
            before = held.get(rank.node_id)
            count, size = _missing(layout, before, stage)
            if count or size:
                loads.append(NodeLoad(rank.node_id, rank.node_name, count, size))
    return Move(tuple(loads), _REBUILD_SECONDS + max((load.byte_count for load in loads), default=0) / rate)


def _missing(layout: ModelLayout, before: StagePlan | None, stage: StagePlan) -> tuple[int, int]:
    """Layers and bytes of ``stage`` that a node with ``before`` lacks."""
    layers = set(range(stage.first_layer, stage.last_layer + 1))
    ends = _end_bytes(layout, stage)
    if before is not None:
        layers -= set(range(before.first_layer, before.last_layer + 1))
        ends = max(ends - _end_bytes(layout, before), 0)
    return len(layers), sum(layout.layer_bytes[layer] for layer in layers) + ends


def _end_bytes(layout: ModelLayout, stage: StagePlan) -> int:
    """What a stage holds beside its layers: the embedding, norm and head."""
    first, end = stage.first_layer, stage.last_layer + 1
    return stage_weight_bytes(layout, first, end) - sum(layout.layer_bytes[first:end])


def _places(plan: Plan) -> list[tuple[str, int, int]]:
    return [(rank.node_id, stage.first_layer, stage.last_layer) for stage in plan.stages for rank in stage.ranks]
