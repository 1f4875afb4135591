"""What a split costs and holds, stage by stage: the numbers under the bar while a boundary is dragged."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from runtime.planning.budget import StageBytes, stage_bytes
from runtime.planning.cost import (
    TOKEN_BYTES,
    Prediction,
    StageSeconds,
    decode_seconds,
    hop_seconds,
    predict,
    prefill_seconds,
    reduce_seconds,
    step_seconds,
    time_to_first_token,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.planning.problem import CostedNode, SplitProblem
    from runtime.planning.reach import Stages

CHUNK_TOKENS = 512
"""A prompt goes through the pipeline in equal chunks of at most so many tokens."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """One stage of a split."""

    node: int
    """Its place in the problem's nodes."""
    first_layer: int
    last_layer: int
    """Inclusive."""
    memory: StageBytes
    """On each rank, where the node is a group."""
    decode_seconds: float
    step_seconds: float
    """For a step of many requests."""

    @property
    def layer_count(self) -> int:
        return self.last_layer - self.first_layer + 1


@dataclass(frozen=True, slots=True)
class Split:
    """Every layer has exactly one stage, in model order; asserted here. It need not fit: see ``short``."""

    problem: SplitProblem
    stages: tuple[StageFigures, ...]
    predicted: Prediction

    def __post_init__(self) -> None:
        edges = [0, *(stage.last_layer + 1 for stage in self.stages)]
        if [stage.first_layer for stage in self.stages] != edges[:-1] or edges[-1] != len(self.problem.model.layers):
            raise ValueError(f"stages must follow each other without gaps over all layers: {self.stages}")
        if len({stage.node for stage in self.stages}) != len(self.stages) or any(
            end <= first for first, end in pairwise(edges)
        ):
            raise ValueError(f"a node has one stage, and a stage at least one layer: {self.stages}")

    @property
    def short(self) -> tuple[StageFigures, ...]:
        """The stages that exceed their node's budget."""
        return tuple(stage for stage in self.stages if stage.memory.room_bytes < 0)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(self.node_of(stage).name for stage in self.stages)

    @property
    def layer_counts(self) -> tuple[int, ...]:
        return tuple(stage.layer_count for stage in self.stages)

    def node_of(self, stage: StageFigures) -> CostedNode:
        """The node that has this stage."""
        return self.problem.nodes[stage.node]

    def ttft_seconds(self, prompt_tokens: int) -> float:
        """Predicted time to first token for a prompt of this length, with an empty prompt cache."""
        links, hidden_bytes = self.problem.links, self.problem.model.hidden_bytes
        before_last = max(prompt_tokens - 1, 0)
        chunks = -(-before_last // CHUNK_TOKENS)
        tokens = -(-before_last // max(chunks, 1))
        ring = zip(self.stages, (*self.stages[1:], self.stages[0]), self._hops(), strict=True)
        seconds = [
            StageSeconds(
                stage.decode_seconds,
                self._prefill_seconds(stage, tokens),
                hop,
                hop_seconds(links[stage.node][following.node], tokens * hidden_bytes),
            )
            for stage, following, hop in ring
        ]
        return time_to_first_token(seconds, chunks)

    def _prefill_seconds(self, stage: StageFigures, tokens: int) -> float:
        """A chunk through a stage; a group waits for its all-reduces too."""
        node, model = self.node_of(stage), self.problem.model_on(stage.node)
        work = prefill_seconds(model, node.speed, stage.first_layer, stage.last_layer + 1, tokens)
        if node.reduce_link is None:
            return work
        # The all-reduces of one token are part of the node's speed.
        reduces = [reduce_seconds(node.reduce_link, model.hidden_bytes, node.ranks, count) for count in (1, tokens)]
        return work + stage.layer_count * (reduces[1] - reduces[0])

    def _hops(self) -> list[float]:
        return _hops(self.problem, [stage.node for stage in self.stages])


def evaluate(problem: SplitProblem, stages: Stages) -> Split:
    """The figures of ``stages``, which name node and end layer in model order. Raises ValueError for a gap."""
    context = problem.context_tokens
    figures = []
    first = 0
    for node, end in stages:
        there, model = problem.nodes[node], problem.model_on(node)
        figures.append(
            StageFigures(
                node,
                first,
                end - 1,
                stage_bytes(problem.model, there, first, end, context),
                decode_seconds(model, there.speed, first, end, context),
                step_seconds(model, there.speed, first, end, context),
            )
        )
        first = end
    predicted = predict(
        [stage.decode_seconds for stage in figures],
        [stage.step_seconds for stage in figures],
        _hops(problem, [node for node, _ in stages]),
    )
    return Split(problem, tuple(figures), predicted)


def stages_of(counts: Sequence[int]) -> Stages:
    """The stages of a number of layers for each node, in the nodes' order; 0 leaves a node out."""
    edges = pairwise(accumulate(counts, initial=0))
    return tuple((node, end) for node, (first, end) in enumerate(edges) if end > first)


def _hops(problem: SplitProblem, order: Sequence[int]) -> list[float]:
    """Seconds for one token from each stage to the next, and of the sampled token from the last back to the first."""
    if len(order) == 1:
        return [0.0]
    forward = [hop_seconds(problem.links[a][b], problem.model.hidden_bytes) for a, b in pairwise(order)]
    return [*forward, hop_seconds(problem.links[order[-1]][order[0]], TOKEN_BYTES)]
