"""What travels over a hop: a small typed header and, for a hidden state, its raw bytes.

On the wire a frame is a fixed prefix (header size u32, payload size u64, frame number u64, network byte order),
the header as msgpack, and the payload. A receiver bounds both sizes before it allocates, and checks the frame number.
"""

from __future__ import annotations

import struct
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PREFIX = struct.Struct("!IQQ")
HEADER_LIMIT_BYTES = 8 << 20
"""Room for a prompt of a million token ids."""

Count = Annotated[int, Meta(ge=0, le=1 << 31)]
Identifier = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
TokenIds = tuple[Annotated[int, Meta(ge=0, lt=1 << 31)], ...]
HiddenDtype = Literal["float32", "float16", "bfloat16"]
StopReason = Literal["stop", "length", "cancelled"]


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen from the logits."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    """0 is greedy."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0


class Frame(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of every header."""


# Down the pipeline, from the driver through every stage ----------------------------------------------------------


class Open(Frame, frozen=True, tag="open"):
    """A new sequence: make its caches, and its sampler on the last stage."""

    sequence: Identifier
    sampling: Sampling


class Step(Frame, frozen=True, tag="step"):
    """Run ``tokens`` of one sequence through the stage. The payload is the hidden state that the stage before made.

    ``position`` is the number of tokens already in the caches; ``sample`` asks the last stage for the next token.
    """

    sequence: Identifier
    position: Count
    tokens: TokenIds
    sample: bool
    dtype: HiddenDtype
    shape: tuple[Count, ...]


class Drop(Frame, frozen=True, tag="drop"):
    """Forget a sequence and free its caches."""

    sequence: Identifier


# From the last stage to the driver ------------------------------------------------------------------------------


class Token(Frame, frozen=True, tag="token"):
    """The next token of a sequence."""

    sequence: Identifier
    token: Count


# Between the controller and the driver --------------------------------------------------------------------------


class Submit(Frame, frozen=True, tag="submit"):
    """Generate after ``prompt`` until an end token, ``max_tokens``, or a cancel."""

    request: Identifier
    prompt: TokenIds
    max_tokens: Annotated[int, Meta(ge=1, le=1 << 31)]
    end_tokens: TokenIds
    sampling: Sampling


class CancelRequest(Frame, frozen=True, tag="cancel"):
    """Stop generating for a request."""

    request: Identifier


class Generated(Frame, frozen=True, tag="generated"):
    """One more token of a request. End tokens are not reported."""

    request: Identifier
    token: Count


class Prefilled(Frame, frozen=True, tag="prefilled"):
    """This many tokens of a request's prompt have been sent through the driver's stage."""

    request: Identifier
    prompt_tokens: Count


class Done(Frame, frozen=True, tag="done"):
    """A request is over."""

    request: Identifier
    reason: StopReason


AnyFrame = Open | Step | Drop | Token | Submit | CancelRequest | Generated | Prefilled | Done

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyFrame)


def encode(frame: AnyFrame) -> bytes:
    """The header's bytes."""
    return _encoder.encode(frame)


def decode(header: bytes | bytearray | memoryview) -> AnyFrame:
    """The header in ``header``; raises :class:`msgspec.DecodeError` if it is none."""
    return _decoder.decode(header)
