"""Tests the local network: sends and listens, and says what it saw. :mod:`discovery.local_network` judges.

The question goes from a port of its own, so answers come to it alone (RFC 6762, section 6.7): no mDNS of ours, and no
responder of the system's, is disturbed.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import select
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING

from discovery.announcement import SERVICE_TYPE
from discovery.interfaces import lan_addresses
from discovery.local_network import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from discovery.address import HostPort
    from discovery.local_network import SystemAnswer

GROUP, PORT = "224.0.0.251", 5353
LISTEN_SECONDS = 2.0
_QUESTION = b"\x09_services\x07_dns-sd\x04_udp\x05local\x00"
"""Every responder answers it: which kinds of services are there (RFC 6763, section 9)."""
_PTR, _INTERNET = 12, 1
_CONNECT_SECONDS = 1.0
_POLICY_DENIED = -65570
_PRIVACY_SINCE = 15


def look(known: Iterable[HostPort] = (), listen_seconds: float = LISTEN_SECONDS) -> Seen:
    """Takes about ``listen_seconds``. ``known`` are places of machines that should be there."""
    addresses = tuple(lan_addresses())
    errors, heard_itself, answers = ask(addresses, listen_seconds)
    return Seen(
        addresses=addresses,
        send_errors=errors,
        heard_itself=heard_itself,
        answers=answers,
        reached_directly=any(map(_reaches, known)),
        system=ask_system() if sys.platform == "darwin" else "unknown",
        has_privacy=has_privacy(platform.mac_ver()[0]),
    )


def has_privacy(macos_version: str) -> bool:
    """Whether this macOS asks for the permission; of another system the version is empty."""
    major = macos_version.partition(".")[0]
    return major.isdigit() and int(major) >= _PRIVACY_SINCE


def ask(addresses: Sequence[str], listen_seconds: float) -> tuple[tuple[int, ...], bool, int]:
    """Ask from each address who is there.

    Returns the errno of each that could not (0 of one that could), whether a packet of ours came back, and how many
    other machines answered.
    """
    errors: list[int] = []
    ears: list[socket.socket] = []
    question = _question()
    with contextlib.ExitStack() as open_sockets:
        for address in addresses:
            mouth = open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            ear = open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            ears += [mouth, ear]
            errors.append(_send(mouth, ear, address, question))
        heard = _listen(ears, listen_seconds)
    ours = set(addresses)
    others = {sender for sender, words in heard if sender not in ours and words != question}
    return tuple(errors), any(words == question for _sender, words in heard), len(others)


def _send(mouth: socket.socket, ear: socket.socket, address: str, question: bytes) -> int:
    """The question to the group's own port, and the same to the port of ``ear``, which has joined the group."""
    own = socket.inet_aton(address)
    try:
        ear.bind(("", 0))
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + own)
        mouth.bind((address, 0))
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        mouth.sendto(question, (GROUP, PORT))
        mouth.sendto(question, (GROUP, ear.getsockname()[1]))
    except OSError as error:
        return error.errno or -1
    return 0


def _listen(ears: Sequence[socket.socket], seconds: float) -> list[tuple[str, bytes]]:
    """Who said what within ``seconds``."""
    heard = []
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 and ears:
        for ear in select.select(ears, [], [], left)[0]:
            with contextlib.suppress(OSError):  # an unreachable port, told by a packet of its own
                words, (sender, _port) = ear.recvfrom(9000)
                heard.append((sender, words))
    return heard


def _question() -> bytes:
    """A message with one question (RFC 1035, section 4.1)."""
    return struct.pack(">6H", 0, 0, 1, 0, 0, 0) + _QUESTION + struct.pack(">2H", _PTR, _INTERNET)


def _reaches(place: HostPort) -> bool:
    try:
        with socket.create_connection((place.host, place.port), _CONNECT_SECONDS):
            return True
    except OSError:
        return False


def ask_system(library: str | None = None, limit_seconds: float = LISTEN_SECONDS) -> SystemAnswer:
    """Browse for our own kind of service by the system's Bonjour (``dns_sd.h``), only to see whether it lets us.

    ``library`` has the functions; None is what every Mac program is linked with.
    """
    functions = ctypes.CDLL(library)
    reply = ctypes.CFUNCTYPE(
        None,
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_int32,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
    )
    errors: list[int] = []

    def on_reply(_ref: int, _flags: int, _interface: int, error: int, *_: object) -> None:
        errors.append(error)

    callback = reply(on_reply)  # kept as long as it may be called
    functions.DNSServiceRefDeallocate.argtypes = [ctypes.c_void_p]
    functions.DNSServiceRefSockFD.argtypes = [ctypes.c_void_p]
    functions.DNSServiceProcessResult.argtypes = [ctypes.c_void_p]
    reference = ctypes.c_void_p()
    kind = SERVICE_TYPE.removesuffix(".local.").encode()
    error = functions.DNSServiceBrowse(ctypes.byref(reference), 0, 0, kind, None, callback, None)
    if error:
        return "denies" if error == _POLICY_DENIED else "unknown"
    try:
        # A refusal comes at once; silence means that it looks, and has found nobody.
        if select.select([functions.DNSServiceRefSockFD(reference)], [], [], limit_seconds)[0]:
            error = functions.DNSServiceProcessResult(reference)
    finally:
        functions.DNSServiceRefDeallocate(reference)
    return "denies" if _POLICY_DENIED in (error, *errors) else "serves"
