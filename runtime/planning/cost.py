"""What a token costs on a node and on a link, and the speeds that follow for a whole pipeline.

Decoding is bound by memory: a stage reads its active weights and its KV cache once per token. A prompt is bound by
arithmetic, and its chunks fill the pipeline as work fills an assembly line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Source = Literal["table", "calibrated", "measured"]
"""Where a number comes from: a chip's table, a calibration of this node, or a run of this model."""

TOKEN_BYTES = 4
"""What the last stage sends back to the first."""
_REDUCES_PER_LAYER = 2
"""After attention and after the feed-forward part."""
REQUESTS_PER_STEP = 8
"""Many requests are taken to decode together, so many in a step."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """One decoder layer in plain numbers.

    Full attention has ``kv_bytes_per_token`` alone, sliding attention a ``window_tokens`` too, and a layer of constant
    state (Mamba, linear attention) ``state_bytes`` instead.
    """

    weight_bytes: int
    active_bytes: int
    """Weights read for one token of one chat: less than all of them where a router picks experts."""
    kv_bytes_per_token: int = 0
    window_tokens: int | None = None
    state_bytes: int = 0
    flops_per_token: float = 0.0
    """About two for each active parameter. What attention adds with the length of the prompt is left out."""
    batch_bytes: int | None = None
    """Weights read for a step of ``REQUESTS_PER_STEP`` tokens, which visit more experts than one does; None: the same
    as for one."""
    divided_bytes: int = 0
    """Of the weights, what the ranks of a tensor group divide among them."""
    cache_divides: bool = False
    """Whether a rank of a tensor group keeps only its heads' part of the cache."""
    keeps_cache: bool = True
    """False for a layer that works on the cache of an earlier one: it reads so much, and keeps nothing itself."""

    def cache_bytes(self, context_tokens: int) -> int:
        """Held when ``context_tokens`` have been seen."""
        return self.cache_read_bytes(context_tokens) if self.keeps_cache else 0

    def cache_read_bytes(self, context_tokens: int) -> int:
        """Read for each token when ``context_tokens`` have been seen."""
        seen = context_tokens if self.window_tokens is None else min(context_tokens, self.window_tokens)
        return self.state_bytes + self.kv_bytes_per_token * seen

    @property
    def step_bytes(self) -> int:
        """Weights read for a step of many requests."""
        return self.active_bytes if self.batch_bytes is None else self.batch_bytes

    def shared(self, ranks: int) -> LayerCost:
        """The part of each of ``ranks`` ranks of a tensor group."""
        held = self.weight_bytes - self.divided_bytes + -(-self.divided_bytes // ranks)
        share = held / max(self.weight_bytes, 1)
        parts = ranks if self.cache_divides else 1
        return replace(
            self,
            weight_bytes=held,
            active_bytes=round(self.active_bytes * share),
            batch_bytes=round(self.step_bytes * share),
            kv_bytes_per_token=-(-self.kv_bytes_per_token // parts),
            state_bytes=-(-self.state_bytes // parts),
            flops_per_token=self.flops_per_token / ranks,
        )


@dataclass(frozen=True, slots=True)
class CopiedCache:
    """What a stage keeps of the cache of a layer on an earlier stage, because its own layers work on it."""

    source: int
    users: frozenset[int]
    """A stage that begins after ``source`` and has any of these layers keeps the copy."""
    kept: LayerCost
    """Its cache is the copy; it takes part in nothing else, and is never more than the cache of the source."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """A model in plain numbers."""

    name: str
    layers: tuple[LayerCost, ...]
    embedding_bytes: int
    """Held by the first stage, and by the last too when it is tied to the head."""
    head_bytes: int
    """Norm and head without a tied embedding: held by the last stage."""
    tied_embedding: bool
    hidden_bytes: int
    """What one token's hidden state weighs on a hop."""
    forbidden_cuts: frozenset[int] = frozenset()
    """Layers that have to stay with the layer before them: no stage may begin there."""
    head_divided_bytes: int = 0
    """Of the head, what the ranks of a tensor group divide among them."""
    copies: tuple[CopiedCache, ...] = ()

    def copied_bytes(self, first_layer: int, end_layer: int, context_tokens: int) -> int:
        """What a stage of layers ``[first_layer, end_layer)`` keeps of the caches of earlier stages."""
        here = range(first_layer, end_layer)
        return sum(
            copy.kept.cache_bytes(context_tokens)
            for copy in self.copies
            if copy.source < first_layer and any(user in here for user in copy.users)
        )

    @property
    def head_active_bytes(self) -> int:
        return self.head_bytes + (self.embedding_bytes if self.tied_embedding else 0)

    def shared(self, ranks: int) -> ModelCost:
        """What each of ``ranks`` ranks of a tensor group holds and reads; embeddings are held whole."""
        return self if ranks == 1 else _shared(self, ranks)


@lru_cache(maxsize=64)
def _shared(model: ModelCost, ranks: int) -> ModelCost:
    divided = model.head_divided_bytes
    return replace(
        model,
        layers=tuple(layer.shared(ranks) for layer in model.layers),
        copies=tuple(replace(copy, kept=copy.kept.shared(ranks)) for copy in model.copies),
        head_bytes=model.head_bytes - divided + -(-divided // ranks),
    )


@dataclass(frozen=True, slots=True)
class NodeSpeed:
    """What a node achieves, not what its maker promises."""

    bytes_per_second: float
    flops_per_second: float
    layer_overhead_seconds: float = 0.0
    source: Source = "table"
    """Of ``bytes_per_second``, on which decoding hangs."""
    flops_source: Source = "table"
    cache_bytes_per_second: float | None = None
    """At which attention reads a KV cache; None where weights are read at the same rate."""

    def __post_init__(self) -> None:
        rates = (self.bytes_per_second, self.flops_per_second, self.cache_rate)
        if not (all(rate > 0 for rate in rates) and self.layer_overhead_seconds >= 0):
            raise ValueError(f"a node's speed must be above zero: {self}")

    @property
    def cache_rate(self) -> float:
        """Bytes of a KV cache that attention reads in a second."""
        return self.bytes_per_second if self.cache_bytes_per_second is None else self.cache_bytes_per_second


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """The way from one node to another."""

    rtt_seconds: float
    bytes_per_second: float

    def __post_init__(self) -> None:
        if not (self.bytes_per_second > 0 and self.rtt_seconds >= 0):
            raise ValueError(f"a link's speed must be above zero: {self}")


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """One stage: what it takes for a token, for a chunk of the prompt, and to send each on to the next stage."""

    decode: float
    prefill_chunk: float
    decode_hop: float
    prefill_hop: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The speeds of a split."""

    chat_tokens_per_second: float
    requests_tokens_per_second: float


def hop_seconds(link: LinkSpeed, byte_count: int) -> float:
    """RTT/2 + bytes/bandwidth."""
    return link.rtt_seconds / 2 + byte_count / link.bytes_per_second


def layer_decode_seconds(layer: LayerCost, speed: NodeSpeed, context_tokens: int) -> float:
    """Active weights and cache, each over its bandwidth, plus the overhead of a layer."""
    cache_seconds = layer.cache_read_bytes(context_tokens) / speed.cache_rate
    return layer.active_bytes / speed.bytes_per_second + cache_seconds + speed.layer_overhead_seconds


def decode_seconds(model: ModelCost, speed: NodeSpeed, first_layer: int, end_layer: int, context_tokens: int) -> float:
    """One token through layers ``[first_layer, end_layer)``, with the head after the last of them."""
    layers = model.layers[first_layer:end_layer]
    head = model.head_active_bytes / speed.bytes_per_second if end_layer == len(model.layers) else 0.0
    return sum(layer_decode_seconds(layer, speed, context_tokens) for layer in layers) + head


def layer_step_seconds(layer: LayerCost, speed: NodeSpeed, context_tokens: int) -> float:
    """A step of many requests, whose caches together hold ``context_tokens``: reading, or arithmetic if that is more.

    Where nothing is known of the arithmetic, its time is that of reading.
    """
    read = layer.step_bytes / speed.bytes_per_second + layer.cache_read_bytes(context_tokens) / speed.cache_rate
    arithmetic = REQUESTS_PER_STEP * layer.flops_per_token / speed.flops_per_second
    return max(read, arithmetic) + speed.layer_overhead_seconds


def step_seconds(model: ModelCost, speed: NodeSpeed, first_layer: int, end_layer: int, context_tokens: int) -> float:
    """A step of many requests through layers ``[first_layer, end_layer)``, with the head after the last of them."""
    layers = model.layers[first_layer:end_layer]
    head = model.head_active_bytes / speed.bytes_per_second if end_layer == len(model.layers) else 0.0
    return sum(layer_step_seconds(layer, speed, context_tokens) for layer in layers) + head


def reduce_seconds(link: LinkSpeed, hidden_bytes: int, ranks: int, tokens: int) -> float:
    """The all-reduces that end attention and feed-forward of one layer, over a ring whose slowest link is ``link``.

    A ring passes each rank's part of the sum around twice but for one step (Baidu's ring all-reduce, as in MLX).
    """
    part = -(-tokens * hidden_bytes // ranks)
    return _REDUCES_PER_LAYER * 2 * (ranks - 1) * hop_seconds(link, part)


def prefill_seconds(model: ModelCost, speed: NodeSpeed, first_layer: int, end_layer: int, tokens: int) -> float:
    """A chunk of ``tokens`` through a run of layers: its arithmetic, or reading the weights if that takes longer."""
    layers = model.layers[first_layer:end_layer]
    arithmetic = sum(layer.flops_per_token for layer in layers) * tokens / speed.flops_per_second
    reading = sum(layer.active_bytes for layer in layers) / speed.bytes_per_second
    return max(arithmetic, reading) + len(layers) * speed.layer_overhead_seconds


def predict(decode: Sequence[float], steps: Sequence[float], hops: Sequence[float]) -> Prediction:
    """Speeds from the stages' seconds for one token and for a step of many, and from all hops, the way back included.

    One chat takes the sum, because each token waits for the one before. Many requests follow the slowest stage.
    """
    return Prediction(1 / (sum(decode) + sum(hops)), REQUESTS_PER_STEP / max(steps))


def time_to_first_token(stages: Sequence[StageSeconds], chunk_count: int) -> float:
    """A prompt of ``chunk_count`` equal chunks and its last token, which goes through alone.

    The first chunk passes every stage and hop but the way back; each further one adds what the slowest of them takes.
    Every ``StageSeconds`` holds the hop after its stage; the last one's is the way back.
    """
    fill = sum(stage.prefill_chunk for stage in stages) + sum(stage.prefill_hop for stage, _ in pairwise(stages))
    slowest = max(*(stage.prefill_chunk for stage in stages), *(stage.prefill_hop for stage in stages[:-1]), 0.0)
    step = sum(stage.decode + stage.decode_hop for stage in stages)
    return (fill + (chunk_count - 1) * slowest if chunk_count else 0.0) + step
