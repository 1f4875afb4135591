"""The plan of a session, the nodes that another one may be made of, and how it has run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from runtime.cluster.link_book import planning_links
from runtime.cluster.run_measured import run_measured
from runtime.cluster.versions import version_refusal
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Refusal, make_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from runtime.cluster.launch import RankState
    from runtime.cluster.messages import RunMeasured
    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.values import Plan


class RunningPlan:
    """Holds ``plan`` until another takes its place. ``folder`` has what is known of the links between nodes."""

    def __init__(self, layout: ModelLayout, plan: Plan, nodes: Iterable[KnownNode], folder: Path) -> None:
        self._layout = layout
        self._folder = folder
        self.plan = plan
        self.nodes: Mapping[str, KnownNode] = _by_id(nodes)
        """By their ids; some may have no part in the plan."""

    def go_over(self, plan: Plan, more_nodes: Iterable[KnownNode]) -> str:
        """Take another plan over the nodes and ``more_nodes``; returns why not, in a sentence, or nothing."""
        nodes = {**self.nodes, **_by_id(more_nodes)}
        if plan.model != self.plan.model or plan.layer_count != self.plan.layer_count:
            return f"This session runs {self.plan.model}; stop it to run {plan.model}."
        strangers = [rank.node_name for rank in plan.ranks if rank.node_id not in nodes]
        if strangers:
            return f"{strangers[0]} is not known to this session; look whether it is in reach."
        if refusal := version_refusal(nodes[node_id].resources for node_id in plan.node_ids):
            return refusal
        self.plan, self.nodes = plan, nodes
        return ""

    def do_without(self, lost_node_id: str | None) -> str:
        """Take the best plan for the nodes that are left, the same one if all of its nodes are.

        Returns why there is none, in a sentence, or nothing.
        """
        nodes = {node_id: node for node_id, node in self.nodes.items() if node_id != lost_node_id}
        if nodes.keys() >= set(self.plan.node_ids):
            self.nodes = nodes
            return ""
        made = make_plan(
            self._layout,
            plan_nodes(self._layout, (node.resources for node in nodes.values())),
            mode=self.plan.mode,
            goal=self.plan.goal or "chat",
            context_tokens=self.plan.context_tokens or None,
            links=planning_links(self._folder, nodes),
        )
        if isinstance(made, Refusal):
            return made.reason
        self.plan, self.nodes = made, nodes
        return ""

    async def measured(self, ranks: Sequence[RankState]) -> RunMeasured:
        """The plan as ``ranks`` ran it; planning takes some milliseconds, more with many nodes."""
        resources = [node.resources for node in self.nodes.values()]
        links = planning_links(self._folder, self.nodes)
        return await asyncio.to_thread(run_measured, self._layout, self.plan, resources, links, tuple(ranks))


def _by_id(nodes: Iterable[KnownNode]) -> dict[str, KnownNode]:
    return {node.resources.node_id: node for node in nodes}
