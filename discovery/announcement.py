"""What an agent says about itself over mDNS, and how the same is checked when it comes from the network.

Pure functions. The instance name is the first 12 hex digits of the node id, so two nodes never share one by chance;
everything else is in the TXT record: ``v`` format version, ``id`` whole node id, ``name`` for people, ``boot`` fresh
at each start, ``port`` of the agent. Address, port and name of a :class:`Sighting` are claims of whoever sent them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVICE_TYPE = "_pomona._tcp.local."
FORMAT_VERSION = "1"
SHORT_ID_DIGITS = 12
MAX_NAME_BYTES = 63
"""Of UTF-8: what a DNS label holds, and enough for a card."""
MAX_ADDRESSES = 16

_NODE_ID = re.compile(r"[0-9a-f]{64}")
_BOOT_ID = re.compile(r"[0-9a-f]{8,32}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_INSTANCE = re.compile(rf"[0-9a-f]{{{SHORT_ID_DIGITS}}}\.{re.escape(SERVICE_TYPE)}")


class BadAnnouncement(ValueError):
    """An announcement that no Pomona agent would send."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One agent as it announces itself. Nothing in it is proved."""

    node_id: str
    name: str
    boot_id: str
    """Another one means that the agent was started again."""
    addresses: tuple[str, ...]
    """Candidates, the likeliest first; IPv6 link-local ones carry their scope."""
    port: int


def is_node_id(text: str) -> bool:
    """Whether ``text`` is 32 bytes in lower-case hex."""
    return _NODE_ID.fullmatch(text) is not None


def is_instance_name(name: str) -> bool:
    """Whether ``name`` is a whole service name that a Pomona agent would choose."""
    return _INSTANCE.fullmatch(name) is not None


def instance_name(node_id: str) -> str:
    """The service name of a node."""
    return f"{node_id[:SHORT_ID_DIGITS]}.{SERVICE_TYPE}"


def host_name(node_id: str) -> str:
    """The mDNS host of a node. Not the machine's own name: nodes that share one would merge their addresses unseen."""
    return f"pomona-{node_id[:SHORT_ID_DIGITS]}.local."


def clean_name(text: str) -> str:
    """``text`` on one line, without characters that do not print, of at most ``MAX_NAME_BYTES``; may be empty."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line.encode()[:MAX_NAME_BYTES].decode(errors="ignore").rstrip()


def encode_txt(node_id: str, name: str, boot_id: str, port: int) -> dict[str, str]:
    """The TXT record of an agent."""
    return {"v": FORMAT_VERSION, "id": node_id, "name": clean_name(name), "boot": boot_id, "port": str(port)}


def decode_announcement(instance: str, properties: Mapping[bytes, bytes | None], addresses: Sequence[str]) -> Sighting:
    """What an announcement says. Raises :class:`BadAnnouncement` if any part of it is not as it should be.

    The port is the TXT record's: unlike the SRV record's it changes in one piece with the boot id.
    """
    if (version := _text(properties, b"v", 8)) != FORMAT_VERSION:
        raise BadAnnouncement(f"format version {version!r}")
    node_id = _matching(properties, b"id", 64, _NODE_ID)
    if instance != instance_name(node_id):
        raise BadAnnouncement(f"node id {node_id} under another node's name")
    name = clean_name(_text(properties, b"name", MAX_NAME_BYTES))
    if not name:
        raise BadAnnouncement("no name")
    port = int(_matching(properties, b"port", 5, _PORT))
    if port > 65535:
        raise BadAnnouncement(f"port {port}")
    if not addresses:
        raise BadAnnouncement("no address")
    boot_id = _matching(properties, b"boot", 32, _BOOT_ID)
    return Sighting(node_id, name, boot_id, tuple(addresses[:MAX_ADDRESSES]), port)


def _text(properties: Mapping[bytes, bytes | None], key: bytes, max_bytes: int) -> str:
    value = properties.get(key)
    if value is None:
        raise BadAnnouncement(f"no {key.decode()}")
    if len(value) > max_bytes:
        raise BadAnnouncement(f"{key.decode()} of {len(value)} bytes")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadAnnouncement(f"{key.decode()} is not UTF-8") from error


def _matching(properties: Mapping[bytes, bytes | None], key: bytes, max_bytes: int, pattern: re.Pattern[str]) -> str:
    text = _text(properties, key, max_bytes)
    if not pattern.fullmatch(text):
        raise BadAnnouncement(f"{key.decode()} {text!r}")
    return text
