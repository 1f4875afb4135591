"""Addresses that a person types, and the file that remembers them: for networks where multicast does not pass."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, private_folder, read_small, set_aside, write_private

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PORT = 47665
"""Where an agent listens if nobody else does there and it was not told otherwise; no service has this port by IANA."""
FILE_NAME = "addresses.json"
MAX_ADDRESSES = 64

_MAX_FILE_BYTES = 64 << 10
_MAX_HOST_CHARACTERS = 253
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")
_SCOPE = re.compile(r"[A-Za-z0-9_.-]{1,32}")


class BadAddress(ValueError):
    """What was typed is no address."""


class HostPort(msgspec.Struct, frozen=True, order=True):
    """Where to look for an agent. ``host`` is a name or an address, IPv6 without brackets and with its scope."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> HostPort:
    """``host``, ``host:port``, ``[IPv6]:port`` or IPv6 alone, with ``%scope`` if it has one.

    Raises :class:`BadAddress`.
    """
    text = text.strip()
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadAddress(f"'{text}' has no end to its address")
        port = rest[1:] if rest else None
    elif text.count(":") > 1:
        host, port = text, None
    else:
        host, colon, after = text.partition(":")
        port = after if colon else None
    return HostPort(_host(host), DEFAULT_PORT if port is None else _port(port))


def _host(text: str) -> str:
    if ":" in text:
        address, percent, scope = text.partition("%")
        try:
            parsed = ipaddress.IPv6Address(address)
        except ValueError:
            raise BadAddress(f"'{text}' is no IPv6 address") from None
        if percent and not _SCOPE.fullmatch(scope):
            raise BadAddress(f"'{text}' names no interface after the %")
        return f"{parsed}{percent}{scope}"
    if re.fullmatch(r"[0-9.]+", text):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise BadAddress(f"'{text}' is no IPv4 address") from None
    if len(text) > _MAX_HOST_CHARACTERS or not _NAME.fullmatch(text):
        raise BadAddress(f"'{text}' is no address; write a name or an address, as studio.local or 192.168.1.20:47665")
    return text.lower().rstrip(".")


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise BadAddress(f"'{text}' is no port; ports go from 1 to 65535")
    return int(text)


class _AddressFile(msgspec.Struct, frozen=True):
    addresses: Annotated[tuple[HostPort, ...], msgspec.Meta(max_length=MAX_ADDRESSES)] = ()


class AddressBook:
    """The addresses that a person typed on this machine. Raises :class:`OSError` if ``folder`` cannot be used."""

    def __init__(self, folder: Path) -> None:
        private_folder(folder)
        self._folder = folder
        self._path = folder / FILE_NAME

    def all(self) -> tuple[HostPort, ...]:
        """All of them, the oldest first."""
        try:
            return msgspec.json.decode(read_small(self._path, _MAX_FILE_BYTES), type=_AddressFile).addresses
        except FileNotFoundError:
            return ()
        except (ValueError, RecursionError) as error:
            set_aside(self._path, "damaged", f"it cannot be read ({error})")
            return ()

    def add(self, address: HostPort) -> None:
        """Remember an address; beyond 64 the oldest is forgotten."""
        with locked(self._folder):
            others = tuple(other for other in self.all() if other != address)
            self._write((*others, address)[-MAX_ADDRESSES:])

    def remove(self, address: HostPort) -> None:
        """Look there no more."""
        with locked(self._folder):
            self._write(tuple(other for other in self.all() if other != address))

    def _write(self, addresses: tuple[HostPort, ...]) -> None:
        write_private(self._path, msgspec.json.encode(_AddressFile(addresses)))
