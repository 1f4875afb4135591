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
_CPU_BYTES_PER_SECOND: dict[WeightKind, float] = {"4-bit": 0.5e9, "8-bit": 1.1e9, "bf16": 1.6e9, "float32": 2.7e9}
_CPU_FLOPS_PER_SECOND, _CPU_LAYER_OVERHEAD_SECONDS, _CPU_CACHE_BYTES_PER_SECOND = 2e9, 450e-6, 1.8e9
"""Of MLX 0.32 without a GPU: ``pomona calibrate`` on a server of 2023, where arithmetic takes longer than memory."""


def plan_nodes(layout: ModelLayout, nodes: Iterable[NodeResources]) -> list[PlanNode]:
    """``nodes`` with what is free on each, and as fast as they read the weights of this model."""
    kind = layout.figures.weight_kind if layout.figures else "bf16"
    return [PlanNode(node.node_id, node.name, node.memory_available_bytes, node_speed(node, kind)) for node in nodes]


def node_speed(node: NodeResources, kind: WeightKind) -> NodeSpeed:
    """Calibrated if that node was, else from its chip's table, else a plain chip's or, without a GPU, a plain CPU's."""
    if node.calibration is not None and (speed := calibrated_speed(node.calibration, kind)):
        return speed
    if node.memory_bandwidth_bytes_per_second:
        return table_speed(node.memory_bandwidth_bytes_per_second * _REACHED_SHARE)
    if node.gpu_cores is None:
        return NodeSpeed(
            _CPU_BYTES_PER_SECOND[kind],
            _CPU_FLOPS_PER_SECOND,
            _CPU_LAYER_OVERHEAD_SECONDS,
            cache_bytes_per_second=_CPU_CACHE_BYTES_PER_SECOND,
        )
    return UNKNOWN_SPEED


def calibrated_speed(calibration: Calibration, kind: WeightKind) -> NodeSpeed | None:
    """What was measured for weights of this kind; None if it was not."""
    rate = calibration.weight_bytes_per_second.get(kind)
    if rate is None:
        return None
    return NodeSpeed(
        rate,
        calibration.flops_per_second,
        calibration.layer_overhead_seconds,
        "calibrated",
        "calibrated",
        calibration.cache_bytes_per_second,
    )
