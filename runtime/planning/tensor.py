"""What tensor mode costs: every node holds its share of every layer, and two all-reduces end each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.planning.budget import StageBytes
from runtime.planning.cost import decode_seconds, hop_seconds
from runtime.planning.evaluation import CHUNK_TOKENS
from runtime.planning.plan import stage_weight_bytes

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout
    from runtime.planning.problem import SplitProblem

_REDUCES_PER_LAYER = 2
"""After attention and after the feed-forward part."""


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """All nodes of a problem as one group. They wait for each other in every layer."""

    problem: SplitProblem
    memory: tuple[StageBytes, ...]
    """Of each node, in order."""
    node_seconds: tuple[float, ...]
    """Each node's own work for a token."""
    reduce_seconds: float
    """All all-reduces of a token."""

    @property
    def tokens_per_second(self) -> float:
        return 1 / (max(self.node_seconds) + self.reduce_seconds)

    @property
    def warning(self) -> str | None:
        """Where the links make the group slower than its fastest node would be alone."""
        problem = self.problem
        layers, context = len(problem.model.layers), problem.context_tokens
        alone = [decode_seconds(problem.model, node.speed, 0, layers, context) for node in problem.nodes]
        rate = 1 / min(alone)
        if rate <= self.tokens_per_second:
            return None
        name = problem.nodes[alone.index(min(alone))].name
        return (
            f"The links make this slower than one node: {self.tokens_per_second:.1f} tok/s, "
            f"{rate:.1f} on {name} alone if it had the room."
        )

    def ttft_seconds(self, prompt_tokens: int) -> float:
        """Predicted time to first token for a prompt of this length, with an empty prompt cache."""
        problem, count = self.problem, len(self.problem.nodes)
        before_last = max(prompt_tokens - 1, 0)
        chunks = -(-before_last // CHUNK_TOKENS)
        flops = sum(layer.flops_per_token for layer in problem.model.layers) * before_last / count
        arithmetic = max(flops / node.speed.flops_per_second for node in problem.nodes)
        reading = chunks * max(self.node_seconds)
        reduces = chunks * _reduce_seconds(problem, -(-before_last // max(chunks, 1)))
        return max(arithmetic, reading) + reduces + 1 / self.tokens_per_second


def tensor_group(problem: SplitProblem, layout: ModelLayout) -> TensorGroup:
    """The figures of all nodes as one group. Whether the heads divide is for ``refuse_tensor`` to say.

    The KV cache divides by key-value heads; where they do not divide, it counts as whole on each node.
    """
    model, count = problem.model, len(problem.nodes)
    weights = stage_weight_bytes(layout, 0, len(layout.layer_bytes), count)
    cache = sum(layer.cache_bytes(problem.context_tokens) for layer in model.layers)
    if layout.key_value_heads % count == 0:
        cache //= count
    held_active = sum(layer.active_bytes for layer in model.layers) / max(sum(layout.layer_bytes), 1)
    read = (weights - (0 if model.tied_embedding else model.embedding_bytes)) * held_active + cache
    return TensorGroup(
        problem,
        tuple(StageBytes(weights, cache, node.reserve_bytes, node.budget_bytes) for node in problem.nodes),
        tuple(
            read / node.speed.bytes_per_second + len(model.layers) * node.speed.layer_overhead_seconds
            for node in problem.nodes
        ),
        _reduce_seconds(problem, 1),
    )


def _reduce_seconds(problem: SplitProblem, tokens: int) -> float:
    """All all-reduces for ``tokens``: a ring passes each part of the sum around twice but for one step."""
    count = len(problem.nodes)
    if count == 1:
        return 0.0
    part = -(-tokens * problem.model.hidden_bytes // count)
    slowest = max(hop_seconds(problem.links[node][(node + 1) % count], part) for node in range(count))
    return len(problem.model.layers) * _REDUCES_PER_LAYER * 2 * (count - 1) * slowest
