"""What a front end asks of the controller."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from runtime.cluster.messages.base import Message
from runtime.cluster.nodes import KnownNode  # msgspec resolves the annotation when it decodes
from runtime.planning.values import Plan  # msgspec resolves the annotation when it decodes
from runtime.server.options import ApiOptions  # msgspec resolves the annotation when it decodes

Role = Literal["system", "user", "assistant"]
MaxTokens = Annotated[int, Meta(ge=1)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
TopP = Annotated[float, Meta(gt=0, le=1)]
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Role
    content: str


class Chat(Message, frozen=True, tag="chat"):
    """Answer ``messages``. Text, then one ``Finished`` or ``Rejected``, come back with the same ``request_id``."""

    request_id: str
    messages: tuple[ChatMessage, ...]
    max_tokens: MaxTokens = 1024
    temperature: Temperature = 0.0
    """0 is greedy: always the likeliest token."""
    top_p: TopP = 1.0
    seed: Seed | None = None


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


class Serve(Message, frozen=True, tag="serve"):
    """Programs shall reach the model as ``options`` say from now on; ``Serving`` follows."""

    options: ApiOptions


class Stop(Message, frozen=True, tag="stop"):
    """End the session; ``Ended`` follows when no worker is left."""
