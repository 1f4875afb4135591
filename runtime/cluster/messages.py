"""What a front end (the window, the console) and the controller say to each other.

JSON text frames on one loopback WebSocket, one tagged struct each. Decoding checks every field.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from resources.memory_return import MemoryReturn  # msgspec resolves the annotation when it decodes
from runtime.cluster.nodes import KnownNode  # msgspec resolves the annotation when it decodes
from runtime.planning.plan import Plan  # msgspec resolves the annotation when it decodes

SESSION_PATH = "/v1/session"
FRAME_LIMIT_BYTES = 16 << 20
"""Room for a chat of a million tokens."""
_GIB = 1 << 30

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "cancelled"]
LoadPhase = Literal["starting", "connecting", "loading", "warming up", "ready"]


class Opened(msgspec.Struct, frozen=True):
    """The controller's first and only line on standard output."""

    port: int = 0
    error: str = ""
    """Why there will be no session, for a person; then the port is 0."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Role
    content: str


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of everything on the wire."""


# From the front end -------------------------------------------------------------------------------------------


class Chat(Message, frozen=True, tag="chat"):
    """Answer ``messages``. Text, then one ``Finished`` or ``Rejected``, come back with the same ``request_id``."""

    request_id: str
    messages: tuple[ChatMessage, ...]
    max_tokens: Annotated[int, Meta(ge=1)] = 1024
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    """0 is greedy: always the likeliest token."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seed: int | None = None


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop one answer; ``Finished`` with reason ``cancelled`` follows."""

    request_id: str


class Resplit(Message, frozen=True, tag="resplit"):
    """Go over to another plan of the same model. Answers that run pause and go on.

    ``LoadProgress`` and ``Ready`` follow, ``PlanRefused`` when nothing was changed, or ``Failed``.
    """

    plan: Plan
    nodes: tuple[KnownNode, ...] = ()
    """Nodes of the plan that had no part in the session so far."""


class Rebalance(Message, frozen=True, tag="rebalance"):
    """What did the stages take, and which split follows from that? ``RunMeasured`` comes back; nothing changes yet."""


class Stop(Message, frozen=True, tag="stop"):
    """End the session; ``Ended`` follows when no worker is left."""


# From the controller ------------------------------------------------------------------------------------------


class LoadProgress(Message, frozen=True, tag="load_progress"):
    """Where one rank is on its way to ready."""

    rank: int
    node_id: str
    node_name: str
    phase: LoadPhase
    loaded_bytes: int
    total_bytes: int


class RankHeld(msgspec.Struct, frozen=True):
    """What a rank truly holds after loading."""

    rank: int
    node_id: str
    node_name: str
    first_layer: int
    last_layer: int
    """Inclusive."""
    planned_bytes: int
    held_bytes: int
    """Bytes that MLX has allocated in that process for weights."""
    read_bytes: int = 0
    """How many of them were read for this plan: all at the start, those of moved layers after a ``Resplit``."""


class ModelFetch(Message, frozen=True, tag="model_fetch"):
    """A node gets what its layers need: first what comes from where, in ``words``, then how far it is."""

    node_id: str
    node_name: str
    words: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_second: float = 0.0
    seconds_left: float | None = None


class UsedLink(msgspec.Struct, frozen=True):
    """The way from one stage to the next."""

    from_node: str
    to_node: str
    name: str
    """``Thunderbolt``, ``Ethernet 10G``, ``Wi-Fi``, ``this machine``."""
    address: str
    """Of the second node, as the first dials it."""
    rtt_seconds: float
    bytes_per_second: float

    def __str__(self) -> str:
        return f"{self.name}, {self.rtt_seconds * 1000:.1f} ms"


class Ready(Message, frozen=True, tag="ready"):
    """The model is loaded and warm; chats may begin."""

    plan: Plan
    ranks: tuple[RankHeld, ...]
    links: tuple[UsedLink, ...] = ()
    """From each stage to the next, and from the last back to the first; empty if nothing was measured."""
    warnings: tuple[str, ...] = ()
    """What may matter and does not stop anything, a sentence each."""


class Serving(Message, frozen=True, tag="serving"):
    """Programs reach the model here, as soon as it is ready."""

    address: str
    """Of the API: ``http://127.0.0.1:52520/v1``."""
    model: str
    """What they have to call it."""
    api_key: str = ""
    """What they have to show; empty if nothing. Front ends are shown it, because they run for the same person."""


class Text(Message, frozen=True, tag="text"):
    """The next piece of an answer. ``token_ids`` came since the last piece; ``text`` may lag behind them."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]


class Finished(Message, frozen=True, tag="finished"):
    """The end of an answer, with what was measured by the controller."""

    request_id: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    ttft_seconds: float
    """From the request's arrival to its first token."""
    decode_tokens_per_second: float
    """Tokens after the first over the time since the first; 0 when there is only one."""
    cached_tokens: int = 0
    """Of the prompt's tokens, those that were in the caches already."""


class Rejected(Message, frozen=True, tag="rejected"):
    """This request cannot be answered; the session goes on."""

    request_id: str
    reason: str


class Answered(Message, frozen=True, tag="answered"):
    """What was asked and answered before this front end came; an answer that goes on continues as ``Text``."""

    chat: Chat
    text: str
    finished: Finished | None = None
    error: str = ""
    """Why it was rejected."""


class PlanRefused(Message, frozen=True, tag="plan_refused"):
    """The session does not go over to another plan and goes on as it is: why, in one sentence."""

    reason: str


class Throughput(Message, frozen=True, tag="throughput"):
    """Sampled ten times a second while something runs, and once when it stops."""

    time_seconds: float
    """Seconds since the session became ready."""
    decode_tokens_per_second: float
    """Over the last second, all answers together."""
    prefill_tokens_per_second: float
    active_requests: int


class Recovering(Message, frozen=True, tag="recovering"):
    """Something was lost and the session goes on without it: answers pause, ``LoadProgress`` and ``Ready`` follow."""

    reason: str
    node_id: str | None = None


class StageTimes(msgspec.Struct, frozen=True):
    """What a rank has counted since it started."""

    rank: int
    node_id: str
    steps: int
    tokens: int
    compute_seconds: float
    wait_seconds: float
    """Nothing to do."""
    send_seconds: float
    """Writing to the next stage, beside compute."""
    sent_bytes: int
    kv_bytes: int
    in_flight: int
    """On the driver: steps that have not come back."""


class Statistics(Message, frozen=True, tag="statistics"):
    """Every rank's counters, at most ten times a second while they move."""

    time_seconds: float
    """Seconds since the session became ready."""
    stages: tuple[StageTimes, ...]


class MeasuredStage(msgspec.Struct, frozen=True):
    """One stage, for one token of one chat."""

    node_names: tuple[str, ...]
    """Several of a tensor group."""
    first_layer: int
    last_layer: int
    """Inclusive."""
    predicted_seconds: float
    """For as long a text as the chats had."""
    measured_seconds: float | None = None
    """None before any chat has run alone."""


class RunMeasured(Message, frozen=True, tag="run_measured"):
    """The stages as they ran beside what was predicted, and a split that follows: when chats have ended, or asked for.

    ``Resplit`` with the proposal goes over to it.
    """

    stages: tuple[MeasuredStage, ...]
    words: str
    """One sentence for a person: what the proposal gains, or why there is none."""
    proposal: Plan | None = None
    """None where another split gains nothing, or nothing was measured."""
    now_tokens_per_second: float = 0.0
    """What was measured comes to with the split as it is, for what the plan is to be best at."""
    then_tokens_per_second: float = 0.0
    """The same with the proposal."""


class Ending(Message, frozen=True, tag="ending"):
    """Something broke and the session cannot go on: told at once. ``Failed`` follows when no worker is left."""

    reason: str
    node_id: str | None = None


class Failed(Message, frozen=True, tag="failed"):
    """The session is over: why, in one sentence that names the node."""

    reason: str
    node_id: str | None = None
    at: float = 0.0
    """When, in seconds since 1970; 0 if nobody looked."""


class MemoryBack(msgspec.Struct, frozen=True):
    """What came back on a node when its workers had ended."""

    node_id: str
    node_name: str
    memory: MemoryReturn

    def __str__(self) -> str:
        held, missing = self.memory.held_bytes, self.memory.missing_bytes
        if not missing:
            return f"{held / _GIB:.1f} GB came back on {self.node_name}."
        return (
            f"{missing / _GIB:.1f} of {held / _GIB:.1f} GB did not come back on {self.node_name}: another program took "
            "them, or the system holds them. Its list of processes tells; a restart frees them."
        )


class Ended(Message, frozen=True, tag="ended"):
    """The session is over because someone asked; no worker is left."""

    memory: tuple[MemoryBack, ...] = ()


ClientMessage = Chat | Cancel | Resplit | Rebalance | Stop
ServerMessage = (
    ModelFetch
    | LoadProgress
    | Ready
    | Serving
    | Text
    | Finished
    | Rejected
    | Answered
    | PlanRefused
    | Throughput
    | Statistics
    | Recovering
    | RunMeasured
    | Ending
    | Failed
    | Ended
)
