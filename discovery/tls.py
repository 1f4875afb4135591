"""TLS between nodes: version 1.3, each end knows the other by its certificate alone.

Names and addresses change, so they are not looked at: the certificate is the identity, and a node's id is its
fingerprint. Needs the standard library only, because workers import it.
"""

from __future__ import annotations

import hashlib
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def fingerprint(der: bytes) -> str:
    """The id of the node whose certificate this is: SHA-256 of its DER form, in hex."""
    return hashlib.sha256(der).hexdigest()


def fingerprint_of_pem(pem: str) -> str:
    """The same for a certificate in PEM form. Raises :class:`ValueError` for anything else."""
    return fingerprint(ssl.PEM_cert_to_DER_cert(pem))


def peer_fingerprint(connection: ssl.SSLSocket | ssl.SSLObject) -> str | None:
    """The id of the node at the other end, or None if it showed no certificate."""
    der = connection.getpeercert(binary_form=True)
    return fingerprint(der) if der else None


def server_context(certificate_path: Path | str, key_path: Path | str, trusted_pems: Iterable[str]) -> ssl.SSLContext:
    """For a port that strangers may reach: a caller may show one of the trusted certificates, or none at all.

    Whoever serves must ask :func:`peer_fingerprint` each time: None is a stranger, and a certificate that has been
    removed is still accepted here. More may be trusted later by :meth:`ssl.SSLContext.load_verify_locations`.
    Raises :class:`OSError` (:class:`ssl.SSLError` is one) if the files cannot be used.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER, certificate_path, key_path)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 0  # a resumed session would bring back a peer that has been removed
    for pem in trusted_pems:
        context.load_verify_locations(cadata=pem)
    return context


def hop_server_context(
    certificate_path: Path | str, key_path: Path | str, caller_pems: Iterable[str]
) -> ssl.SSLContext:
    """For a port that nobody but these callers may use: the handshake fails for all others."""
    context = server_context(certificate_path, key_path, caller_pems)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(certificate_path: Path | str, key_path: Path | str, peer_pem: str) -> ssl.SSLContext:
    """For calling one peer, who must show exactly ``peer_pem``, with our own certificate."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, certificate_path, key_path)
    context.load_verify_locations(cadata=peer_pem)
    return context


def anonymous_context(peer_pem: str | None = None) -> ssl.SSLContext:
    """For calling without a certificate of our own.

    Without ``peer_pem`` whoever answers is accepted: nothing that is said there can be believed or kept secret before
    the certificate is proved in another way.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    if peer_pem is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=peer_pem)
    return context


def _context(
    protocol: ssl._SSLMethod, certificate_path: Path | str | None = None, key_path: Path | str | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    if certificate_path is not None:
        # A password is given so that OpenSSL never asks for one on the terminal; our keys have none.
        context.load_cert_chain(certificate_path, key_path, password="")
    return context
