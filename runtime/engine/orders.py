"""What an agent and its worker say to each other over the worker's pipes: one JSON object a line."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from runtime.engine.hop import Address  # msgspec resolves the annotation when it decodes

Index = Annotated[int, Meta(ge=0, le=100_000)]
HopKind = Literal["tls", "mlx"]
"""How hidden states go from stage to stage: over the hops themselves, or over MLX's own connections beside them."""
Positive = Annotated[int, Meta(ge=1, le=100_000)]


class Order(msgspec.Struct, frozen=True, tag_field="order"):
    """From the agent, on the worker's standard input."""


class CacheLimits(msgspec.Struct, frozen=True):
    """How much the caches of a job may hold, the same for all its ranks; the driver alone enforces it."""

    context_tokens: Annotated[int, Meta(ge=1)] = 1 << 20
    """Of one sequence: its prompt and its answer."""
    cache_tokens: Annotated[int, Meta(ge=0)] = 0
    """Of all sequences together, with those that are kept; 0: as many as of one."""
    prefix_tokens: Annotated[int, Meta(ge=0)] = 0
    """Of finished sequences, kept for prompts that begin alike. They give way to requests."""
    kv_bits: Literal[0, 8] = 0
    """8 holds the keys and values of full-attention layers in 8 bits; 0 as the model computes them."""

    @property
    def room_tokens(self) -> int:
        return self.cache_tokens or self.context_tokens


class Launch(Order, frozen=True, tag="launch"):
    """Who this worker is. The first line it reads; the key travels here, because arguments can be seen by others.

    ``rank`` names the worker within its job as long as it lives; where it stands in the pipeline may change.
    """

    job: str
    key: Annotated[bytes, Meta(min_length=32, max_length=32)]
    host: str
    """The address to listen on for hops."""
    model_folder: str
    rank: Index
    first_layer: Index
    end_layer: Positive
    """One past the last layer."""
    stage: Index
    stage_count: Positive
    rank_in_stage: Index
    ranks_in_stage: Positive

    epoch: Index = 0
    """Counts how often the pipeline was built. Hops of another epoch are refused."""
    limits: CacheLimits = CacheLimits()

    hops: HopKind = "tls"
    certificate_path: str = ""
    """This node's certificate, as a PEM file; the agent fills in its own, here and in ``key_path``."""
    key_path: str = ""
    callers: tuple[str, ...] = ()
    """Certificates, as PEM, of the other nodes of the job and of its controller: nobody else may call this rank."""
    controller: str = ""
    """The controller's certificate, as PEM: it alone may send the driver requests and read what comes of them."""

    @property
    def is_driver(self) -> bool:
        return self.stage == 0 and self.rank_in_stage == 0

    @property
    def over_mlx(self) -> bool:
        """Whether hidden states come and go over MLX."""
        return self.hops == "mlx" and self.stage_count > 1

    @property
    def is_leader(self) -> bool:
        """The first rank of a stage receives for it, passes on, and samples."""
        return self.rank_in_stage == 0


class Connect(Order, frozen=True, tag="connect"):
    """Everyone listens: make the hops, then load."""

    next_stage: Address | None = None
    """Where the leader's output goes: the next stage's leader, or from the last stage the driver."""
    followers: tuple[Address, ...] = ()
    """The other ranks of this stage, to whom its leader hands every frame."""
    ring: tuple[Address, ...] = ()
    """For MLX's own connections, in order: the ranks of this stage, or all stages if hidden states go over MLX."""
    caller: str = ""
    """What the rank that sends to us must show, as PEM: its node's certificate. Empty if no rank does."""


class Rebuild(Order, frozen=True, tag="rebuild"):
    """Leave the pipeline between two steps and become part of the next epoch's: other layers, other neighbours.

    Layers that stay are kept in memory. A new ``Listening`` follows, then the worker waits for ``Connect``.
    """

    launch: Launch


class Quit(Order, frozen=True, tag="quit"):
    """End now. A rank leaves only on this word, because a missing rank makes the others fail."""


class Stay(Order, frozen=True, tag="stay"):
    """The agent is there. It says so every few seconds; a worker whose agent has fallen silent ends."""


class Report(msgspec.Struct, frozen=True, tag_field="report"):
    """From the worker, on its standard output."""


class Listening(Report, frozen=True, tag="listening"):
    """Hops may be dialled at ``port``; ``ring_port`` is kept free for MLX when the stage is a tensor group."""

    port: Annotated[int, Meta(ge=1, le=65535)]
    ring_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    epoch: Index = 0


class Progress(Report, frozen=True, tag="progress"):
    """How far loading has come."""

    phase: Literal["connecting", "loading", "warming up"]
    loaded_bytes: int = 0
    epoch: Index = 0


class LoadStalled(Report, frozen=True, tag="load_stalled"):
    """While it loads, the process has neither computed nor read anything for so long (engine/stalls.py)."""

    seconds: float


class Loaded(Report, frozen=True, tag="loaded"):
    """The stage is warm."""

    held_bytes: int
    """What MLX has allocated in this process."""
    read_bytes: int
    """How much of that is new in this epoch: weights that were in memory before are not read again."""
    epoch: Index = 0


class StepStatistics(Report, frozen=True, tag="steps"):
    """Counters since the worker started, sampled ten times a second while they move (engine/counters.py).

    Those of chats are of this epoch alone.
    """

    steps: int
    tokens: int
    compute_seconds: float
    sent_bytes: int
    kv_bytes: int
    """In the caches of all open sequences, the kept ones included."""
    wait_seconds: float = 0.0
    send_seconds: float = 0.0
    in_flight: int = 0
    chat_steps: int = 0
    chat_seconds: float = 0.0
    chat_context_tokens: int = 0
    stalled_seconds: float = 0.0
    """Spent in one step that takes far longer than those before it (engine/stalls.py); 0 otherwise."""
    stalled_cpu_share: float = 0.0
    """Of a core, meanwhile."""


class WorkerFailed(Report, frozen=True, tag="failed"):
    """The worker ends. ``lost_peer`` means that it only saw another rank of its tensor group go."""

    reason: str
    lost_peer: bool = False


class PeerLost(Report, frozen=True, tag="peer_lost"):
    """A hop of this epoch is gone. The worker keeps its layers and waits for ``Rebuild`` or ``Quit``."""

    reason: str
    epoch: Index = 0


AnyOrder = Launch | Connect | Rebuild | Quit | Stay
AnyReport = Listening | Progress | LoadStalled | Loaded | StepStatistics | WorkerFailed | PeerLost

_encoder = msgspec.json.Encoder()
_order_decoder = msgspec.json.Decoder(AnyOrder)
_report_decoder = msgspec.json.Decoder(AnyReport)


def encode_line(message: AnyOrder | AnyReport) -> bytes:
    """One line, with its end."""
    return _encoder.encode(message) + b"\n"


def decode_order(line: bytes) -> AnyOrder:
    """Raises :class:`msgspec.DecodeError` for anything but an order."""
    try:
        return _order_decoder.decode(line)
    except RecursionError as error:
        raise msgspec.DecodeError("too deep") from error


def decode_report(line: bytes) -> AnyReport:
    """Raises :class:`msgspec.DecodeError` for anything but a report."""
    try:
        return _report_decoder.decode(line)
    except RecursionError as error:
        raise msgspec.DecodeError("too deep") from error
