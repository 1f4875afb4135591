"""Whom this node trusts, kept in ``trust.json`` beside its key.

Two ways lead in. *Pairing* makes a controller: a node whose owner is ours, that may start jobs here. A controller may
*introduce* the other nodes that it uses: peers, that may read model bytes, measure links and join a job's hops, and no
more. Whom this machine's owner has removed is never brought back by an introduction.

The file is what counts: agent, window and commands each read it again when it has changed, so a removal is known to all
of them at the next request.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery import tls
from discovery.address import HostPort  # msgspec resolves the annotation when it decodes
from discovery.announcement import MAX_ADDRESSES, clean_name
from discovery.files import locked, private_folder, read_small, set_aside, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FILE_NAME = "trust.json"
MAX_NODES = 64
MAX_CERTIFICATE_BYTES = 4096
"""As PEM; ours have 600."""

_MAX_FILE_BYTES = 1 << 20
_MAX_REVOKED = 1024

Certificate = Annotated[str, msgspec.Meta(max_length=MAX_CERTIFICATE_BYTES)]
NodeId = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Role(enum.IntEnum):
    """What a caller may do; each may do all that those before it may."""

    STRANGER = 0
    """Has shown no certificate: may ask who is there, and pair."""
    PEER = 1
    """A node of the same controller: may read model bytes, measure links, join hops."""
    CONTROLLER = 2
    """A paired node: may start jobs, see what this node has, and introduce its other nodes."""
    OWNER = 3
    """This very node: may open pairing."""


class Trusted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node that is trusted here."""

    node_id: NodeId
    certificate: Certificate
    """PEM; the id is its fingerprint."""
    name: str = ""
    addresses: tuple[HostPort, ...] = ()
    """Where it was reached, the newest first."""
    introduced_by: str = ""
    """The id of the controller that vouches for it; empty for a node that was paired with this one."""

    @property
    def role(self) -> Role:
        return Role.PEER if self.introduced_by else Role.CONTROLLER


class _TrustFile(msgspec.Struct, frozen=True):
    nodes: Annotated[tuple[Trusted, ...], msgspec.Meta(max_length=MAX_NODES)] = ()
    revoked: Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=_MAX_REVOKED)] = ()


class TrustStore:
    """The nodes trusted in ``folder``. Not for several threads; several processes may have one each.

    Everything that reads or writes raises :class:`OSError` if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        private_folder(folder)
        self._folder = folder
        self._path = folder / FILE_NAME
        self._stamp: tuple[int, int, int] | None = None
        self._file = _TrustFile()
        self._by_id: dict[str, Trusted] = {}

    @property
    def nodes(self) -> tuple[Trusted, ...]:
        """All of them as the file has them now."""
        self._refresh()
        return self._file.nodes

    @property
    def paired(self) -> tuple[Trusted, ...]:
        """Those that were paired with this node."""
        return tuple(node for node in self.nodes if not node.introduced_by)

    def get(self, node_id: str) -> Trusted | None:
        """The node with this id if it is trusted now."""
        self._refresh()
        return self._by_id.get(node_id)

    def pair(self, certificate: str, name: str, addresses: Iterable[HostPort] = ()) -> Trusted:
        """Trust a node as a controller, also if it was removed before.

        Raises :class:`ValueError` for a bad certificate and when there are too many nodes.
        """
        node = Trusted(
            tls.fingerprint_of_pem(certificate), certificate, clean_name(name), tuple(addresses)[:MAX_ADDRESSES]
        )

        def change(file: _TrustFile) -> _TrustFile:
            others = tuple(other for other in file.nodes if other.node_id != node.node_id)
            if len(others) >= MAX_NODES:
                raise ValueError(f"more than {MAX_NODES} nodes")
            return _TrustFile((*others, node), tuple(one for one in file.revoked if one != node.node_id))

        self._change(change)
        return node

    def introduce(self, controller_id: str, certificates: Iterable[tuple[str, str]]) -> None:
        """Trust these nodes (certificate and name of each) as peers, instead of those that the controller named before.

        Nodes that are paired with this one, or that were removed, stay as they are. Raises :class:`ValueError` for a
        bad certificate and when there are too many nodes.
        """
        named = {tls.fingerprint_of_pem(pem): (pem, clean_name(name)) for pem, name in certificates}

        def change(file: _TrustFile) -> _TrustFile:
            kept = tuple(node for node in file.nodes if node.introduced_by != controller_id)
            known = {node.node_id for node in kept} | {controller_id, *file.revoked}
            new = tuple(
                Trusted(node_id, pem, name, introduced_by=controller_id)
                for node_id, (pem, name) in named.items()
                if node_id not in known
            )
            if len(kept) + len(new) > MAX_NODES:
                raise ValueError(f"more than {MAX_NODES} nodes")
            return _TrustFile(kept + new, file.revoked)

        self._change(change)

    def remove(self, node_id: str, *, revoke: bool = True) -> bool:
        """Trust a node no more, nor those that it introduced; returns whether it was trusted.

        With ``revoke`` no introduction brings it back; only pairing does.
        """
        found = self.get(node_id) is not None

        def change(file: _TrustFile) -> _TrustFile:
            nodes = tuple(node for node in file.nodes if node_id not in {node.node_id, node.introduced_by})
            others = tuple(one for one in file.revoked if one != node_id)
            return _TrustFile(nodes, (*others, node_id)[-_MAX_REVOKED:] if revoke else others)

        if found:
            self._change(change)
        return found

    def remember_address(self, node_id: str, address: HostPort) -> None:
        """Note where a trusted node was reached: that is where it will be looked for first."""
        node = self.get(node_id)
        if node is None or node.addresses[:1] == (address,):
            return

        def change(file: _TrustFile) -> _TrustFile:
            return _TrustFile(
                tuple(_reached(other, address) if other.node_id == node_id else other for other in file.nodes),
                file.revoked,
            )

        self._change(change)

    def _change(self, change: Callable[[_TrustFile], _TrustFile]) -> None:
        with locked(self._folder):
            self._refresh()
            file = change(self._file)
            if file != self._file:
                write_private(self._path, msgspec.json.encode(file))
        self._refresh()

    def _refresh(self) -> None:
        """Read the file if it is another one than last time: every change replaces it by a new one."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            stamp = None
        else:
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if stamp == self._stamp:
            return
        file = _TrustFile() if stamp is None else self._read()
        self._stamp, self._file = stamp, file
        self._by_id = {node.node_id: node for node in file.nodes}

    def _read(self) -> _TrustFile:
        try:
            file = _decode(read_small(self._path, _MAX_FILE_BYTES))
        except FileNotFoundError:
            return _TrustFile()
        except (ValueError, RecursionError) as error:
            set_aside(self._path, "damaged", f"it cannot be read ({error}); every node has to be paired again")
            return _TrustFile()
        return file


def _decode(content: bytes) -> _TrustFile:
    file = msgspec.json.decode(content, type=_TrustFile)
    if any(node.node_id != tls.fingerprint_of_pem(node.certificate) for node in file.nodes):
        raise ValueError("an id that is not its certificate's")
    return file


def _reached(node: Trusted, address: HostPort) -> Trusted:
    others = tuple(other for other in node.addresses if other != address)
    return msgspec.structs.replace(node, addresses=(address, *others)[:MAX_ADDRESSES])
