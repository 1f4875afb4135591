"""What a plan is made of: frozen, and checked whenever one is made or comes over a wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from runtime.planning.cost import Source  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout

Mode = Literal["pipeline", "tensor"]
Goal = Literal["chat", "requests", "even", "room"]
"""Fastest chat, most requests, even, most room left."""
ChangeKind = Literal["boundary", "context", "reserve", "node", "goal", "pins", "mode"]

_CONTEXT_TOKENS = 8192


class RankPlan(msgspec.Struct, frozen=True):
    """One worker process: its node and what it will hold there."""

    node_id: str
    node_name: str
    weight_bytes: int
    kv_bytes: int = 0
    """Its caches when the plan's context is full."""
    reserve_bytes: int = 0
    """Kept free of the budget, for activations."""
    budget_bytes: int = 0
    """Memory that a model may take on this node."""

    @property
    def needed_bytes(self) -> int:
        """What must be free of the budget."""
        return self.weight_bytes + self.kv_bytes + self.reserve_bytes

    @property
    def room_bytes(self) -> int:
        """What is left of the budget; below zero, what is missing."""
        return self.budget_bytes - self.needed_bytes


class StagePlan(msgspec.Struct, frozen=True):
    """A run of layers and the ranks that compute it: one rank, or a tensor-parallel group."""

    first_layer: int
    last_layer: int
    """Inclusive."""
    ranks: tuple[RankPlan, ...]
    decode_seconds: float = 0.0
    """Predicted for one token of one chat, without the hop to the next stage."""
    source: Source = "table"
    """Where the node's speed comes from, on which the prediction hangs."""

    @property
    def layer_count(self) -> int:
        return self.last_layer - self.first_layer + 1


class PredictedSpeed(msgspec.Struct, frozen=True):
    """What a plan is expected to reach; nothing of it was measured."""

    chat_tokens_per_second: float
    requests_tokens_per_second: float
    ttft_seconds_1k: float
    ttft_seconds_16k: float


class UnusedNode(msgspec.Struct, frozen=True):
    """A node that a plan leaves out, and why, in a sentence that begins with its name."""

    node_id: str
    node_name: str
    reason: str


class GroupOffer(msgspec.Struct, frozen=True):
    """Nodes that are predicted to be faster together: as tensor groups, each of which is one stage."""

    groups: tuple[tuple[str, ...], ...]
    """Ids of nodes, as pins take them."""
    words: str
    """For a person: who with whom, and what it gains."""
    predicted: PredictedSpeed


class Change(msgspec.Struct, frozen=True):
    """Something to click: what to set, and what that is in words."""

    kind: ChangeKind
    amount: int
    """Layers to give away, the context in tokens, bytes less of reserve, or the budget of one more node; else 0."""
    words: str
    counts: tuple[int, ...] = ()
    """For a boundary: the layers of each node after the move, in the nodes' order."""


class Plan(msgspec.Struct, frozen=True):
    """Every layer has exactly one stage, in model order. Checked when a plan is made and when one is decoded."""

    model: str
    mode: Mode
    layer_count: int
    stages: tuple[StagePlan, ...]
    context_tokens: int = 0
    """The tokens for which the caches were planned, prompt and answer together; 0 if nothing was planned for them."""
    goal: Goal | None = None
    """What it is best at; None if its split was given."""
    predicted: PredictedSpeed | None = None
    unused: tuple[UnusedNode, ...] = ()
    warning: str | None = None
    offer: GroupOffer | None = None
    """For a goal: what would be faster still."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a plan without stages")
        next_layer = 0
        for stage in self.stages:
            if stage.first_layer != next_layer or stage.last_layer < stage.first_layer or not stage.ranks:
                raise ValueError(f"stages of a plan must follow each other without gaps: {self.stages}")
            next_layer = stage.last_layer + 1
        if next_layer != self.layer_count:
            raise ValueError(f"a plan for {self.layer_count} layers ends at layer {next_layer}")

    @property
    def ranks(self) -> tuple[RankPlan, ...]:
        """Stages in model order, ranks of a stage side by side."""
        return tuple(rank for stage in self.stages for rank in stage.ranks)

    @property
    def node_ids(self) -> tuple[str, ...]:
        """Of the nodes that have a part in it, in the order of their first ranks."""
        return tuple(dict.fromkeys(rank.node_id for rank in self.ranks))


class Shortfall(msgspec.Struct, frozen=True):
    """A node that would have to hold more than its budget."""

    node_id: str
    node_name: str
    missing_bytes: int


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no plan, in one sentence for a person."""

    reason: str
    shortfalls: tuple[Shortfall, ...] = ()
    changes: tuple[Change, ...] = ()
    """Each of them alone would make it fit."""
    draft: Plan | None = None
    """What was asked for, or what lacks least, though it does not fit."""


def default_context_tokens(layout: ModelLayout) -> int:
    """What is planned for if nobody says: 8192 tokens, or the longest that the model was made for if that is less."""
    return min(_CONTEXT_TOKENS, layout.context_tokens)
