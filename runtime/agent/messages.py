"""What a controller and an agent say to each other over a job's WebSocket: JSON text frames.

The connection is the job's lease: when it closes, whoever closed it, the agent ends every worker of the job.
"""

from __future__ import annotations

import msgspec

from resources.memory_return import MemoryReturn  # msgspec resolves the annotation when it decodes
from runtime.engine.orders import (  # msgspec resolves the annotations when it decodes
    AnyReport,
    Connect,
    Launch,
    Rebuild,
)

JOB_PATH = "/v1/job"
NODE_PATH = "/v1/node"
FRAME_LIMIT_BYTES = 1 << 20
HEARTBEAT_SECONDS = 10.0
"""Between pings; an answer may take half of it. It ends what the other side does not close any more: the lease of a
controller that was stopped or cut off. An agent's own silence is noticed sooner, by its :class:`StillHere`."""
SIGN_SECONDS = 1.0
"""Between two signs of life of an agent in a job."""


class AgentStarted(msgspec.Struct, frozen=True):
    """The agent's first line on standard output: it listens, and is about to be announced."""

    port: int
    node_id: str
    pid: int
    certificate: str = ""
    """As PEM."""


class JobMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of everything on the wire."""


class StartRank(JobMessage, frozen=True, tag="start_rank"):
    """Start a worker. The agent decides itself on which address it listens."""

    launch: Launch


class OrderRank(JobMessage, frozen=True, tag="order_rank"):
    """Pass this order to a rank that was started here."""

    rank: int
    order: Connect | Rebuild


class EndRank(JobMessage, frozen=True, tag="end_rank"):
    """End one rank: ask it, then end its process. Nothing more is told of it."""

    rank: int


class EndJob(JobMessage, frozen=True, tag="end_job"):
    """End all ranks of the job; ``JobEnded`` follows when none is left."""


class RankReport(JobMessage, frozen=True, tag="rank_report"):
    """A worker said something."""

    rank: int
    report: AnyReport


class RankExited(JobMessage, frozen=True, tag="rank_exited"):
    """A worker is gone without having been asked. ``status`` as :attr:`subprocess.Popen.returncode`."""

    rank: int
    status: int


class RankStopped(JobMessage, frozen=True, tag="rank_stopped"):
    """The process of a worker is there, but a signal keeps it from running."""

    rank: int


class StillHere(JobMessage, frozen=True, tag="still_here"):
    """The agent runs. It says so every second for as long as the job is open."""


class JobRefused(JobMessage, frozen=True, tag="job_refused"):
    """The agent cannot do what was asked: one sentence for a person."""

    reason: str


class JobEnded(JobMessage, frozen=True, tag="job_ended"):
    """No worker of the job is left on this node."""

    memory: MemoryReturn | None = None
    """What came back of what they held; None if there was none."""


ControllerMessage = StartRank | OrderRank | EndRank | EndJob
AgentMessage = RankReport | RankExited | RankStopped | StillHere | JobRefused | JobEnded

_encoder = msgspec.json.Encoder()
_controller_decoder = msgspec.json.Decoder(ControllerMessage)
_agent_decoder = msgspec.json.Decoder(AgentMessage)


def encode(message: ControllerMessage | AgentMessage) -> str:
    """One text frame."""
    return _encoder.encode(message).decode()


def decode_from_controller(text: str) -> ControllerMessage:
    """Raises :class:`msgspec.DecodeError` for anything else."""
    try:
        return _controller_decoder.decode(text)
    except RecursionError as error:
        raise msgspec.DecodeError("too deep") from error


def decode_from_agent(text: str) -> AgentMessage:
    """Raises :class:`msgspec.DecodeError` for anything else."""
    try:
        return _agent_decoder.decode(text)
    except RecursionError as error:
        raise msgspec.DecodeError("too deep") from error
