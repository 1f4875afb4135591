"""Real handshakes: who gets in with which certificate, and what each end knows of the other."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from discovery.identity import Identity, load_identity
from discovery.tls import (
    anonymous_context,
    client_context,
    fingerprint_of_pem,
    hop_server_context,
    peer_fingerprint,
    server_context,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def nodes(tmp_path) -> list[Identity]:
    return [load_identity(tmp_path / str(number)) for number in range(3)]


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """A port that tells each caller the fingerprint that it sees."""

    async def tell(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(peer_fingerprint(writer.get_extra_info("ssl_object"))).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(tell, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def call(port: int, context: ssl.SSLContext) -> tuple[str | None, str | None]:
    """The ids that the two ends saw: that of the caller, that of the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        connection = writer.get_extra_info("ssl_object")
        assert connection.version() == "TLSv1.3"
        return json.loads(await reader.read()), peer_fingerprint(connection)
    finally:
        writer.close()


def server_of(node: Identity, *trusted: Identity) -> ssl.SSLContext:
    return server_context(node.certificate_path, node.key_path, [peer.certificate_pem for peer in trusted])


def client_of(node: Identity, peer: Identity) -> ssl.SSLContext:
    return client_context(node.certificate_path, node.key_path, peer.certificate_pem)


async def test_both_ends_know_each_other(nodes):
    agent, peer, _ = nodes
    async with serving(server_of(agent, peer)) as port:
        assert await call(port, client_of(peer, agent)) == (peer.node_id, agent.node_id)


async def test_a_stranger_without_a_certificate_is_seen_as_one(nodes):
    agent, peer, _ = nodes
    async with serving(server_of(agent, peer)) as port:
        assert await call(port, anonymous_context()) == (None, agent.node_id)
        assert await call(port, anonymous_context(agent.certificate_pem)) == (None, agent.node_id)


async def test_an_unknown_certificate_does_not_get_in(nodes):
    agent, peer, stranger = nodes
    async with serving(server_of(agent, peer)) as port:
        with pytest.raises((ssl.SSLError, ConnectionError, json.JSONDecodeError)):  # TLS 1.3 tells the caller late
            await call(port, client_of(stranger, agent))


async def test_a_certificate_trusted_later_gets_in_at_the_next_call(nodes):
    agent, peer, late = nodes
    context = server_of(agent, peer)
    async with serving(context) as port:
        context.load_verify_locations(cadata=late.certificate_pem)
        assert await call(port, client_of(late, agent)) == (late.node_id, agent.node_id)


async def test_another_server_than_the_pinned_one_is_refused(nodes):
    agent, peer, other = nodes
    async with serving(server_of(agent, peer)) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await call(port, client_of(peer, other))
        with pytest.raises(ssl.SSLCertVerificationError):
            await call(port, anonymous_context(other.certificate_pem))


async def test_a_trusted_node_cannot_vouch_for_another(nodes, tmp_path):
    """A certificate signed by a trusted one is a stranger's: none of ours is an authority."""
    agent, peer, _ = nodes
    forged, key = signed_by(peer)
    (tmp_path / "forged.pem").write_bytes(forged)
    (tmp_path / "forged-key.pem").write_bytes(key)
    context = client_context(tmp_path / "forged.pem", tmp_path / "forged-key.pem", agent.certificate_pem)
    async with serving(server_of(agent, peer)) as port:
        with pytest.raises((ssl.SSLError, ConnectionError, json.JSONDecodeError)):
            await call(port, context)


async def test_a_hop_takes_nobody_but_its_caller(nodes):
    agent, peer, stranger = nodes
    context = hop_server_context(agent.certificate_path, agent.key_path, [peer.certificate_pem])
    async with serving(context) as port:
        assert await call(port, client_of(peer, agent)) == (peer.node_id, agent.node_id)
        for refused in (anonymous_context(), client_of(stranger, agent)):
            with pytest.raises((ssl.SSLError, ConnectionError, json.JSONDecodeError)):
                await call(port, refused)


async def test_older_tls_is_refused(nodes):
    agent, peer, _ = nodes
    context = anonymous_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(server_of(agent, peer)) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await call(port, context)


def test_a_certificate_that_is_none_has_no_fingerprint():
    for text in ("", "no certificate", "-----BEGIN CERTIFICATE-----"):
        with pytest.raises(ValueError, match=r"."):
            fingerprint_of_pem(text)


def test_workers_need_not_import_the_cryptography_package():
    program = "import sys, discovery.tls; sys.exit('cryptography' in sys.modules or 'zeroconf' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def signed_by(signer: Identity) -> tuple[bytes, bytes]:
    """A certificate for a new key, signed with the key of ``signer``."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    issuer = x509.load_pem_x509_certificate(signer.certificate_pem.encode())
    issuer_key = serialization.load_pem_private_key(signer.key_path.read_bytes(), None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "forged")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(issuer_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return (
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
