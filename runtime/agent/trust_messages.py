"""What nodes say to each other about trust: small JSON bodies, decoded by type before a word is believed."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from discovery.pairing import MESSAGE_BYTES, PROOF_BYTES
from discovery.trust import MAX_NODES, Certificate  # msgspec resolves the annotations when it decodes

HELLO_PATH = "/v1/hello"
PAIR_PATH = "/v1/pair"
PROVE_PATH = "/v1/pair/prove"
CODE_PATH = "/v1/code"
PEERS_PATH = "/v1/peers"
TRUST_PATH = "/v1/trust"
BODY_LIMIT_BYTES = 64 << 10

Name = Annotated[str, Meta(max_length=256)]
Proof = Annotated[bytes, Meta(min_length=PROOF_BYTES, max_length=PROOF_BYTES)]
Element = Annotated[bytes, Meta(min_length=MESSAGE_BYTES, max_length=MESSAGE_BYTES)]
ExchangeId = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Port = Annotated[int, Meta(ge=0, le=65535)]


class Hello(msgspec.Struct, frozen=True):
    """What anyone may know of a node."""

    id: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    name: Name
    version: Annotated[str, Meta(max_length=64)]
    shows_code: bool = False
    """Whether it waits for someone to type the code that it shows."""


class PairStart(msgspec.Struct, frozen=True):
    """The guest's first word: it counts as a try."""

    certificate: Certificate
    """The guest's, as PEM."""
    name: Name
    message: Element
    port: Port = 0
    """Where the guest's own agent listens; 0 if it has none."""


class PairAnswer(msgspec.Struct, frozen=True):
    """The host's answer: its half, and the proof that it knows the code."""

    exchange: ExchangeId
    message: Element
    proof: Proof


class PairProof(msgspec.Struct, frozen=True):
    """The guest's second word: now the host trusts it."""

    exchange: ExchangeId
    proof: Proof


class Paired(msgspec.Struct, frozen=True):
    """The host trusts the guest."""

    name: Name


class ShownCode(msgspec.Struct, frozen=True):
    """The code that this machine shows now."""

    code: str
    seconds: float
    """How long it is good for."""


class Peer(msgspec.Struct, frozen=True):
    """A node that a controller introduces."""

    certificate: Certificate
    name: Name


class Peers(msgspec.Struct, frozen=True):
    """All nodes that a controller introduces; they replace those that it named before."""

    nodes: Annotated[tuple[Peer, ...], Meta(max_length=MAX_NODES)]


T = TypeVar("T", bound=msgspec.Struct)


def decode(body: bytes | bytearray, kind: type[T]) -> T:
    """A body of this kind. Raises :class:`ValueError` for anything else, however deep or odd."""
    try:
        return msgspec.json.decode(body, type=kind)
    except RecursionError as error:
        raise ValueError("too deep") from error
