"""What a trusted node has, as it says itself, made fit for labels and sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from resources.node import MemoryParts, NodeResources, Versions
from resources.parse import UNKNOWN, UNKNOWN_CHIP, tidy
from runtime.agent.calls import NoAnswer, call
from runtime.agent.messages import NODE_PATH

if TYPE_CHECKING:
    import ssl

    import aiohttp

    from discovery.address import HostPort

MEMORY_STEP_BYTES = 16 * 2**20
"""Available memory below the total is rounded down to this, so that the usual breathing of a system is no news."""

_MAX_MEMORY_BYTES = 2**50


async def ask_node(
    session: aiohttp.ClientSession, place: HostPort, node_id: str, context: ssl.SSLContext
) -> NodeResources:
    """What the agent of ``node_id`` has, as it says itself. Raises :class:`Refused` or :class:`NoAnswer`."""
    body = await call(session, "GET", place, NODE_PATH, context)
    try:
        resources = msgspec.json.decode(body, type=NodeResources)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoAnswer(repr(error)) from error
    if resources.node_id != node_id:
        raise NoAnswer("another node answers there")
    return _sane(resources)


def _sane(resources: NodeResources) -> NodeResources:
    """The same with texts that fit labels and memory that sums can trust, the available one rounded."""
    total, available = resources.memory_total_bytes, resources.memory_available_bytes
    if not (0 <= available <= total <= _MAX_MEMORY_BYTES and total > 0):
        raise NoAnswer("memory that no machine has")
    parts = resources.memory
    if parts is not None and parts.others_bytes + parts.ours_bytes + parts.free_bytes != total:
        raise NoAnswer("memory that does not add up")
    versions = msgspec.structs.asdict(resources.versions)
    return msgspec.structs.replace(
        resources,
        name=tidy(resources.name) or "Unnamed",
        chip=tidy(resources.chip) or UNKNOWN_CHIP,
        memory_available_bytes=total if available == total else _rounded(available),
        memory=None if parts is None else _rounded_parts(parts),
        versions=Versions(**{part: tidy(version) or UNKNOWN for part, version in versions.items()}),
    )


def _rounded_parts(parts: MemoryParts) -> MemoryParts:
    free = _rounded(parts.free_bytes)
    return msgspec.structs.replace(parts, free_bytes=free, others_bytes=parts.others_bytes + parts.free_bytes - free)


def _rounded(byte_count: int) -> int:
    return byte_count // MEMORY_STEP_BYTES * MEMORY_STEP_BYTES
