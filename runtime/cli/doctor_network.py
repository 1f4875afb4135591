"""The doctor's looks at ports and networks. They send to the local network alone."""

from __future__ import annotations

import errno
import socket

import msgspec

from discovery.local_network import Verdict, advice
from resources.processes import port_holder
from runtime.agent.folder import data_folder
from runtime.agent.this_machine import ThisMachine

LOOPBACK = "127.0.0.1"

_MDNS_GROUP = "224.0.0.251"
_MDNS_PORT = 5353
_HEAR_SECONDS = 2.0


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    problem: str
    """One sentence."""
    advice: str
    """What the person may do."""
    stops: bool
    """Whether no model can run, or be had, before it is put right."""


def check_port(port: int, host: str = LOOPBACK) -> list[Finding]:
    """Whether an agent could listen on ``port``, or on any port if it is 0."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the agent does: waiting ports are free
        try:
            listener.bind((host, port))
            listener.listen()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                holder = port_holder(port)
                problem = f"Port {port} is taken by {holder or 'another program'}."
                advice = f"End it, or give another port: pomona agent --port {port + 1 if port < 65535 else 0}."
            else:
                problem = f"Pomona may not listen on port {port} of {host} ({error.strerror})."
                advice = "Give a port above 1023, or none: pomona agent."
            return [Finding(problem, advice, stops=True)]
    return []


def check_multicast() -> list[Finding]:
    """Whether a packet to the mDNS group comes back on the loopback: nodes on this machine find each other by that."""
    try:
        _hear_ourselves(LOOPBACK)
    except OSError as error:
        problem = f"Multicast DNS does not work inside this machine ({error.strerror or 'nothing came back'})."
        advice = "Check that the loopback interface is up and that no firewall drops UDP to 224.0.0.251."
        return [Finding(problem, advice, stops=True)]
    return []


def check_local_network() -> list[Finding]:
    """Whether other machines can be found, and if not, whether a permission or the network is to blame."""
    verdict = ThisMachine(data_folder()).check_network()
    if verdict in {Verdict.WORKS, Verdict.NO_NETWORK, Verdict.NOBODY_ANSWERED}:
        return []
    return [Finding(*advice(verdict), stops=False)]


def _hear_ourselves(address: str) -> None:
    """Send a packet to the group and receive it. Raises :class:`OSError`."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        ear.bind(("", 0))
        membership = socket.inet_aton(_MDNS_GROUP) + socket.inet_aton(address)
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        ear.settimeout(_HEAR_SECONDS)
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        word = f"pomona doctor {id(ear)}".encode()
        mouth.sendto(word, (_MDNS_GROUP, ear.getsockname()[1]))
        while ear.recv(1024) != word:
            pass


def check_mdns_port() -> list[Finding]:
    """Whether the mDNS port can be shared with the system's own responder, as zeroconf does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as shared:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            shared.bind(("", _MDNS_PORT))
        except OSError as error:
            return [
                Finding(
                    f"Pomona cannot use UDP port {_MDNS_PORT}, by which nodes find each other ({error.strerror}).",
                    "A program holds it for itself: end that, or have it share the port.",
                    stops=True,
                )
            ]
    return []
