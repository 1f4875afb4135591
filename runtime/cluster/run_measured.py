"""From what the ranks of a session counted to what a person is told of the run, and the split that follows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.cluster.messages import MeasuredStage, RunMeasured
from runtime.planning.from_resources import plan_nodes
from runtime.planning.rebalance import Rebalancing, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from resources.node import NodeResources
    from runtime.cluster.launch import RankState
    from runtime.models.layout import ModelLayout
    from runtime.planning.places import Link
    from runtime.planning.rebalance import Proposal
    from runtime.planning.values import Plan

_WORTH = 0.02
"""Gains below this are noise: nobody is asked to move layers for them."""
_ENOUGH_STEPS = 4


def run_measured(
    layout: ModelLayout,
    plan: Plan,
    nodes: Iterable[NodeResources],
    links: Sequence[Link],
    ranks: Sequence[RankState],
) -> RunMeasured:
    """``plan`` as ``ranks`` ran it, over some of ``nodes``, which count with what they had free before."""
    counted = {
        rank.planned.node_id: rank.statistics
        for rank in ranks
        if rank.statistics is not None and rank.statistics.chat_steps >= _ENOUGH_STEPS
    }
    steps = sum(one.chat_steps for one in counted.values())
    run = Run(
        {node_id: one.chat_seconds / one.chat_steps for node_id, one in counted.items()},
        sum(one.chat_context_tokens for one in counted.values()) // max(steps, 1),
    )
    rebalancing = Rebalancing(layout, plan_nodes(layout, nodes), plan, run, links=links)
    stages = tuple(
        MeasuredStage(
            tuple(rank.node_name for rank in one.stage.ranks),
            one.stage.first_layer,
            one.stage.last_layer,
            one.stage.decode_seconds,
            one.measured_seconds,
        )
        for one in rebalancing.stages()
    )
    if any(stage.measured_seconds is None for stage in stages):
        return RunMeasured(stages, "Nothing was measured yet: let one chat run alone for a few tokens.")
    proposal = rebalancing.proposal()
    if proposal is None:
        return RunMeasured(stages, _why_none(plan))
    now, then = proposal.now_tokens_per_second, proposal.then_tokens_per_second
    if proposal.gain < _WORTH or _shape(proposal.plan) == _shape(plan):
        words = f"Another split gains nothing: this one reaches {now:.1f} tok/s by what was measured."
        return RunMeasured(stages, words, None, now, now)
    return RunMeasured(stages, _gain_words(proposal), proposal.plan, now, then)


def _gain_words(proposal: Proposal) -> str:
    parts = []
    for stage in proposal.plan.stages:
        layers = "1 layer" if stage.layer_count == 1 else f"{stage.layer_count} layers"
        parts.append(f"{layers} on {' + '.join(rank.node_name for rank in stage.ranks)}")
    now, then = proposal.now_tokens_per_second, proposal.then_tokens_per_second
    digits = 1 if now >= 1 else 2
    return (
        f"By what was measured, {', '.join(parts)} would give {then:.{digits}f} tok/s "
        f"instead of {now:.{digits}f}: {proposal.gain:.0%} more."
    )


def _why_none(plan: Plan) -> str:
    if plan.mode == "tensor":
        return "In tensor mode every node computes its part of every layer, so there is no boundary to move."
    return "No other split fits what the nodes have free."


def _shape(plan: Plan) -> list[tuple[str, int]]:
    return [(stage.ranks[0].node_id, stage.layer_count) for stage in plan.stages]
