"""Nodes that serve model bytes to each other over real TLS, without the rest of an agent."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discovery import tls
from discovery.identity import load_identity
from runtime.agent.models.byte_server import ByteServer
from runtime.agent.models.library import Library
from runtime.agent.models.peer_source import PeerPlace, PeerSource
from runtime.models.fetch.transfer import Transfer
from runtime.models.store import ModelStore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from discovery.identity import Identity
    from runtime.models.fetch.source import Source
    from runtime.models.fetch.transfer import Progress
    from runtime.models.manifest import Manifest
    from runtime.models.store import StoredModel


class TrustedKeys:
    """Trusts the given certificates."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.trusted: dict[str, str] = {}

    def trust(self, other: Identity) -> None:
        self.trusted[other.node_id] = other.certificate_pem

    def server_context(self) -> ssl.SSLContext:
        return tls.hop_server_context(self.identity.certificate_path, self.identity.key_path, self.trusted.values())

    def may_read(self, fingerprint: str | None) -> bool:
        return fingerprint in self.trusted


@dataclass
class Node:
    """A node with a store, a library and a server."""

    name: str
    keys: TrustedKeys
    library: Library
    server: ByteServer
    port: int

    @property
    def identity(self) -> Identity:
        return self.keys.identity

    def source_for(
        self, reader: Node, manifest: Manifest, has: Iterable[str] = (), later: Iterable[str] = (), port: int = 0
    ) -> PeerSource:
        """This node, as ``reader`` sees it."""
        its = reader.identity
        context = tls.client_context(its.certificate_path, its.key_path, self.identity.certificate_pem)
        place = PeerPlace(self.name, "127.0.0.1", port or self.port, context, frozenset(has), frozenset(later))
        return PeerSource(place, manifest.name, manifest.revision)

    async def fetch(self, manifest: Manifest, names: list[str], sources: list[Source]) -> tuple[StoredModel, Progress]:
        """Fetch parts into the store."""
        model = self.library.store.open(manifest)
        with self.library.fetching(manifest.revision, names):
            progress = await Transfer(model, names, sources).run()
        return model, progress


@contextmanager
def nodes(folder: Path, *names: str) -> Iterator[list[Node]]:
    """Nodes that trust each other."""
    made: list[Node] = []
    for name in names:
        keys = TrustedKeys(load_identity(folder / name))
        library = Library(ModelStore(folder / name / "models"))
        server = ByteServer(library, keys)
        made.append(Node(name, keys, library, server, 0))
    for node in made:
        for other in made:
            node.keys.trust(other.identity)
    for node in made:
        node.port = node.server.start("127.0.0.1")
    try:
        yield made
    finally:
        for node in made:
            node.server.close()
