"""What is said when links are measured: JSON bodies, and the routes that take them.

Measuring is asked for by a controller, and done between two nodes: one dials the other at each of its addresses, as a
hop of a job would.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from resources.links import MAX_CANDIDATES, MAX_INTERFACES, Address, NetworkInterface

INTERFACES_PATH = "/v1/links/interfaces"
ECHO_PATH = "/v1/links/echo"
BULK_PATH = "/v1/links/bulk"
MEASURE_PATH = "/v1/links/measure"
THUNDERBOLT_PATH = "/v1/links/thunderbolt"

ECHO_BYTES = 8192
"""About one token's hidden state."""

Interfaces = Annotated[tuple[NetworkInterface, ...], Meta(max_length=MAX_INTERFACES)]
Seconds = Annotated[float, Meta(ge=0, le=3600)]
BytesPerSecond = Annotated[float, Meta(gt=0, le=1e15)]
Reason = Annotated[str, Meta(max_length=500)]


class MeasureLinks(msgspec.Struct, frozen=True):
    """To the node that is to dial: measure every way to this other node."""

    node_id: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    port: Annotated[int, Meta(ge=1, le=65535)]
    """Of the other node's agent."""
    own_interfaces: Interfaces
    """What the node that dials said that it has, and the other one."""
    interfaces: Interfaces


class MeasuredLink(msgspec.Struct, frozen=True):
    """One way that the other node has proved itself on."""

    own_address: Address
    """Of the end that dialled, as the system chose it."""
    address: Address
    """Of the other end, as it was dialled."""
    rtt_seconds: Seconds
    bytes_per_second: BytesPerSecond


class DeadAddress(msgspec.Struct, frozen=True):
    """An address at which the other node did not prove itself."""

    address: Address
    reason: Reason


class MeasuredLinks(msgspec.Struct, frozen=True):
    """The answer to :class:`MeasureLinks`."""

    links: Annotated[tuple[MeasuredLink, ...], Meta(max_length=MAX_CANDIDATES)]
    dead: Annotated[tuple[DeadAddress, ...], Meta(max_length=MAX_CANDIDATES)] = ()


class BulkReceived(msgspec.Struct, frozen=True):
    """How much came, and in what time from the first piece to the last."""

    byte_count: Annotated[int, Meta(ge=0)]
    seconds: Seconds
