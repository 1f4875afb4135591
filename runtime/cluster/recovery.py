"""How a session goes on after it has lost a rank or a node. Pure: the caller brings the clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Link, Plan, Refusal

RECOVERIES, RECOVERY_SECONDS = 3, 600.0
"""A session is mended so often within so long; what breaks more often is broken for another reason."""


@dataclass(slots=True)
class Recoveries:
    """Counts them."""

    _times: deque[float] = field(default_factory=deque)

    def take(self, now_seconds: float) -> bool:
        """Whether the session may be mended once more, which then counts."""
        while self._times and now_seconds - self._times[0] > RECOVERY_SECONDS:
            self._times.popleft()
        if len(self._times) >= RECOVERIES:
            return False
        self._times.append(now_seconds)
        return True


def plan_for_those_left(
    layout: ModelLayout, plan: Plan, left: Iterable[KnownNode], links: Sequence[Link] = ()
) -> Plan | Refusal:
    """``plan`` itself if all of its nodes are left, else the best one for the nodes that are, with the same context."""
    nodes = {node.resources.node_id: node.resources for node in left}
    planned = dict.fromkeys(rank.node_id for stage in plan.stages for rank in stage.ranks)
    if planned.keys() <= nodes.keys():
        return plan
    return make_plan(
        layout,
        plan_nodes(layout, nodes.values()),
        mode=plan.mode,
        goal=plan.goal or "chat",
        context_tokens=plan.context_tokens or None,
        links=links,
    )
