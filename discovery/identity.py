"""Who this node is: a key, a certificate whose fingerprint is the node's id, and a name for people.

They live in the agent's data folder: ``key.pem`` and ``certificate.pem``, and ``node.json`` with what they are tied to.
The key has the same protection as one of ssh: a file that only its owner can read. A system's keychain would ask
questions that nobody can answer on a Mac without a screen.
"""

from __future__ import annotations

import ssl
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from discovery import tls
from discovery.announcement import clean_name
from discovery.certificate import new_certificate
from discovery.files import locked, private_folder, read_small, set_aside, write_private
from discovery.machine import hardware_id, machine_name

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD, KEY, CERTIFICATE = "node.json", "key.pem", "certificate.pem"

_MAX_FILE_BYTES = 16 << 10


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What ``node.json`` holds."""

    hardware_id: str = ""
    """Of the machine that made the key; empty if that machine told none."""
    name: str = ""
    """A name that the person chose instead of the machine's."""


@dataclass(frozen=True, slots=True)
class Identity:
    """This node, as others will know it."""

    node_id: str
    """SHA-256 of the certificate's DER form, in hex."""
    name: str
    certificate_pem: str
    certificate_path: Path
    key_path: Path


def load_identity(folder: Path) -> Identity:
    """The identity kept in ``folder``, made there at the first call. Two processes that call at once get the same one.

    Damaged files are moved aside and a new identity made; so are those of another machine, whose disk was copied to
    this one: two nodes with one id would be taken for each other. A machine that tells no hardware id keeps what it
    has. Raises :class:`OSError` if the folder cannot be read or written: an id that would be forgotten is none.
    """
    private_folder(folder)
    machine = hardware_id()
    with locked(folder):
        record = _read_record(folder)
        if record.hardware_id and machine and record.hardware_id != machine:
            for name in (KEY, CERTIFICATE):
                set_aside(folder / name, "copied", "it was made on another machine")
        pem = _read_certificate(folder) or _make(folder)
        tied = msgspec.structs.replace(record, hardware_id=machine or record.hardware_id)
        if tied != record or not (folder / RECORD).exists():
            write_private(folder / RECORD, msgspec.json.encode(tied))
    name = clean_name(record.name) or machine_name()
    return Identity(tls.fingerprint_of_pem(pem), name, pem, folder / CERTIFICATE, folder / KEY)


@contextmanager
def temporary_identity() -> Iterator[Identity]:
    """An identity that ends with the ``with`` block: for ranks that one process starts for itself."""
    with tempfile.TemporaryDirectory(prefix="pomona-identity-") as folder:
        yield load_identity(Path(folder))


def _make(folder: Path) -> str:
    key, pem = new_certificate()
    write_private(folder / KEY, key)
    write_private(folder / CERTIFICATE, pem)  # last: a key without a certificate is one that a crash left unfinished
    return pem.decode()


def _read_certificate(folder: Path) -> str | None:
    """The certificate in ``folder`` if its key is there too and they belong together."""
    key, certificate = folder / KEY, folder / CERTIFICATE
    if not certificate.exists():
        return None
    try:
        pem = read_small(certificate, _MAX_FILE_BYTES).decode("ascii")
        read_small(key, _MAX_FILE_BYTES)
        tls.client_context(certificate, key, pem)  # reads both as a connection would
        tls.fingerprint_of_pem(pem)
    except (FileNotFoundError, ssl.SSLError, ValueError) as error:
        for path in (key, certificate):
            set_aside(path, "damaged", f"it cannot be used ({error})")
        return None
    key.chmod(0o600)
    return pem


def _read_record(folder: Path) -> _Record:
    path = folder / RECORD
    try:
        record = msgspec.json.decode(read_small(path, _MAX_FILE_BYTES), type=_Record)
    except FileNotFoundError:
        return _Record()
    except (ValueError, RecursionError) as error:
        set_aside(path, "damaged", f"it cannot be read ({error})")
        return _Record()
    path.chmod(0o600)
    return record
