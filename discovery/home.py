"""A node's data folder as the processes on it use it: who it is, whom it trusts, and the TLS that follows."""

from __future__ import annotations

import functools
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discovery import tls
from discovery.identity import load_identity
from discovery.trust import Role, TrustStore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from discovery.trust import Trusted

_CONTEXTS = 256


class Home:
    """Who this node is and whom it trusts. Raises :class:`OSError` if ``folder`` cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity = load_identity(folder)
        self.trust = TrustStore(folder)
        self.context_for = functools.lru_cache(_CONTEXTS)(self._new_context)
        """The TLS context for calling the node with this certificate; the same one each time, so that connections to
        it can be kept and used again."""

    def certificate_of(self, node_id: str) -> str | None:
        """What the node with this id must show, as PEM; None if it is not trusted. This very node always is."""
        if node_id == self.identity.node_id:
            return self.identity.certificate_pem
        found = self.trust.get(node_id)
        return found.certificate if found is not None else None

    def role_of(self, fingerprint: str | None) -> Role:
        """What whoever has shown the certificate with this fingerprint may do now."""
        if fingerprint is None:
            return Role.STRANGER
        if fingerprint == self.identity.node_id:
            return Role.OWNER
        found: Trusted | None = self.trust.get(fingerprint)
        return found.role if found is not None else Role.STRANGER

    def _new_context(self, certificate: str) -> ssl.SSLContext:
        return tls.client_context(self.identity.certificate_path, self.identity.key_path, certificate)


@contextmanager
def temporary_home() -> Iterator[Home]:
    """A home that ends with the ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="pomona-home-") as folder:
        yield Home(Path(folder))
