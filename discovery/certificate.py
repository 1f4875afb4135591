"""Makes a key and the certificate that proves it. The only module that needs the cryptography package for that."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_DAYS = 365 * 20
_BACKDATED_DAYS = 2
"""A peer's clock may be wrong by as much."""


def new_certificate() -> tuple[bytes, bytes]:
    """A fresh ECDSA P-256 key and a certificate that it signs itself (X.509 version 3), both as PEM.

    The certificate says nothing of the machine or the person: whoever asks on the network gets it. Its subject is
    random, so that OpenSSL, which looks for trusted certificates by subject, finds one alone.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"pomona-{secrets.token_hex(8)}")])
    now = datetime.now(UTC)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=_BACKDATED_DAYS))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key_pem, certificate.public_bytes(serialization.Encoding.PEM)
