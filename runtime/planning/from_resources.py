"""From what nodes say of themselves to what the planner has to know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.planning.cost import NodeSpeed
from runtime.planning.places import UNKNOWN_SPEED, PlanNode, table_speed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from resources.node import Calibration, NodeResources
    from runtime.models.layer_figures import WeightKind
    from runtime.models.layout import ModelLayout

_REACHED_SHARE = 0.8
"""Of the bandwidth that a maker specifies, what reading weights reaches."""


def plan_nodes(layout: ModelLayout, nodes: Iterable[NodeResources]) -> list[PlanNode]:
    """``nodes`` with what is free on each, and as fast as they read the weights of this model."""
    kind = layout.figures.weight_kind if layout.figures else "bf16"
    return [PlanNode(node.node_id, node.name, node.memory_available_bytes, node_speed(node, kind)) for node in nodes]


def node_speed(node: NodeResources, kind: WeightKind) -> NodeSpeed:
    """Calibrated if that node was, else from its chip's table, else a plain chip's."""
    if node.calibration is not None and (speed := calibrated_speed(node.calibration, kind)):
        return speed
    if node.memory_bandwidth_bytes_per_second:
        return table_speed(node.memory_bandwidth_bytes_per_second * _REACHED_SHARE)
    return UNKNOWN_SPEED


def calibrated_speed(calibration: Calibration, kind: WeightKind) -> NodeSpeed | None:
    """What was measured for weights of this kind; None if it was not."""
    rate = calibration.weight_bytes_per_second.get(kind)
    if rate is None:
        return None
    return NodeSpeed(rate, calibration.flops_per_second, calibration.layer_overhead_seconds, "calibrated", "calibrated")
