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
CarriedDtype = Literal["float32", "float16", "bfloat16", "int32", "uint32", "bool"]
StopReason = Literal["stop", "length", "cancelled"]
ClientName = Annotated[str, Meta(max_length=256)]
TokenMask = Annotated[bytes, Meta(max_length=1 << 18)]
"""One bit for each token id, the lowest bit of the first byte for id 0: set for those that may come next. Ids beyond
its end may not. Empty: every token may. Room for two million ids."""

LOGPROBS_LIMIT = 20
"""As many alternatives as OpenAI's API gives."""


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen from the logits. The defaults change nothing."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    """0 is greedy."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Keep the likeliest tokens that together have this probability."""
    top_k: Count = 0
    """Keep so many of the likeliest tokens; 0 keeps all."""
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Keep tokens at least so likely, relative to the likeliest."""
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] = 1.0
    presence_penalty: Annotated[float, Meta(ge=-10, le=10)] = 0.0
    frequency_penalty: Annotated[float, Meta(ge=-10, le=10)] = 0.0
    logit_bias: tuple[tuple[Count, float], ...] = ()
    """Added to the logits of these tokens."""
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0
    logprobs: Annotated[int, Meta(ge=-1, le=LOGPROBS_LIMIT)] = -1
    """Report log-probabilities: of the chosen token and of so many of the likeliest ones; -1 reports none."""
    report_logits: bool = False
    """Send the logits back as well; for comparing a split with the whole model."""


class TokenLogprobs(msgspec.Struct, frozen=True):
    """What a token was chosen from, as natural logarithms of probabilities.

    They are those after penalties, bias and mask, before temperature and the cuts of top-p, top-k and min-p.
    """

    chosen: float
    top: tuple[tuple[Count, float], ...] = ()
    """Token ids, the likeliest first; fewer than asked for where a mask leaves fewer."""


class Frame(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of every header."""


# Down the pipeline, from the driver through every stage ----------------------------------------------------------


class Prefix(msgspec.Struct, frozen=True):
    """The first ``token_count`` tokens of an open sequence."""

    sequence: Identifier
    token_count: Count


class Open(Frame, frozen=True, tag="open"):
    """A new sequence: make its caches, empty or as a copy of a prefix, and its sampler on the last stage."""

    sequence: Identifier
    sampling: Sampling
    prefix: Prefix | None = None


class CarriedArray(msgspec.Struct, frozen=True):
    """One array of a payload: the hidden state, shape (rows, width, hidden size), or what else layers hand on."""

    name: Annotated[str, Meta(max_length=64)]
    dtype: CarriedDtype
    shape: tuple[Count, ...]


class Step(Frame, frozen=True, tag="step"):
    """Run tokens through the stage: one row for each sequence, all rows of one width.

    The payload is what the stage before made for this one, array after array.
    """

    number: Identifier
    """Counts the driver's steps."""
    sequences: tuple[Identifier, ...]
    positions: tuple[Count, ...]
    """How many tokens the caches of each sequence hold before the step."""
    tokens: TokenIds
    """Row after row."""
    sample: bool
    """Whether the last stage chooses a next token for each row."""
    masks: tuple[TokenMask, ...] = ()
    """For each row the tokens that may be chosen; none at all if no row is masked."""
    carried: tuple[CarriedArray, ...] = ()
    """The arrays of the payload."""
    stage_seconds: tuple[float, ...] = ()
    """What the stages before spent computing."""

    @property
    def width(self) -> int:
        return len(self.tokens) // len(self.sequences)


class Drop(Frame, frozen=True, tag="drop"):
    """Forget sequences and free their caches."""

    sequences: tuple[Identifier, ...]


# From the last stage to the driver ------------------------------------------------------------------------------


class Stepped(Frame, frozen=True, tag="stepped"):
    """A step is through: the tokens that it sampled, one for each row, and what each stage spent computing."""

    number: Identifier
    tokens: TokenIds
    stage_seconds: tuple[float, ...]
    logits: tuple[bytes, ...] = ()
    """Of each row if one asked for them: its logits as float32, nothing for rows that did not ask."""
    logprobs: tuple[TokenLogprobs | None, ...] = ()
    """Of each row if one asked for them."""


# Between the controller and the driver --------------------------------------------------------------------------


class Submit(Frame, frozen=True, tag="submit"):
    """Generate after ``prompt`` until an end token, ``max_tokens``, or a cancel.

    Where prompt and answer together pass the context that the caches have room for, the answer is cut there and ends
    with reason ``length``; a prompt that leaves no room for one token is refused.
    """

    request: Identifier
    prompt: TokenIds
    max_tokens: Annotated[int, Meta(ge=1, le=1 << 31)]
    end_tokens: TokenIds
    sampling: Sampling
    masked: bool = False
    """Each token waits for a :class:`Mask` that says which may be chosen; the prompt does not."""
    client: ClientName = ""
    """Whose request it is: those who wait take turns."""


class Mask(Frame, frozen=True, tag="mask"):
    """Which tokens may be the ``index``-th of a request's answer, 0 the first. One that allows none ends the answer."""

    request: Identifier
    index: Count
    allowed: TokenMask


class CancelRequest(Frame, frozen=True, tag="cancel"):
    """Stop generating for a request."""

    request: Identifier


class Generated(Frame, frozen=True, tag="generated"):
    """One more token for each of these requests. End tokens are not reported."""

    requests: tuple[Identifier, ...]
    tokens: TokenIds
    logprobs: tuple[TokenLogprobs | None, ...] = ()
    """One for each token if one of these requests asked for them."""


class Logits(Frame, frozen=True, tag="logits"):
    """What the next token of a request is chosen from, as float32; sent before the token."""

    request: Identifier
    values: bytes


class Prefilled(Frame, frozen=True, tag="prefilled"):
    """This many tokens of a request's prompt are in the caches, ``cached_tokens`` of them since an earlier request."""

    request: Identifier
    prompt_tokens: Count
    cached_tokens: Count


class Done(Frame, frozen=True, tag="done"):
    """A request is over."""

    request: Identifier
    reason: StopReason


class Refused(Frame, frozen=True, tag="refused"):
    """A request that will not be answered, and why, for a person."""

    request: Identifier
    reason: str


AnyFrame = (
    Open | Step | Drop | Stepped | Submit | CancelRequest | Mask | Generated | Logits | Prefilled | Done | Refused
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyFrame)


def encode(frame: AnyFrame) -> bytes:
    """The header's bytes."""
    return _encoder.encode(frame)


def decode(header: bytes | bytearray | memoryview) -> AnyFrame:
    """The header in ``header``; raises :class:`msgspec.DecodeError` if it is none."""
    try:
        return _decoder.decode(header)
    except RecursionError as error:
        raise msgspec.DecodeError("too deep") from error
