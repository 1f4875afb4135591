"""Can this machine speak with others on its network, and if not, whose doing is it? The judgement; no sockets here.

macOS 15 and newer ask the person before an app may speak with the local network, and no call tells what they said. What
can be seen instead: a denied app gets ``EHOSTUNREACH`` for every packet to the local network while all else works
(Apple's TN3179), and the system's Bonjour service refuses it with ``kDNSServiceErr_PolicyDenied``. Sometimes, mostly
after a restart, the permission is on and Bonjour serves the app, but its packets are still refused, until the person
switches the permission off and on.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum
from typing import Literal

SETTINGS_URL = "x-apple.systempreferences:com.apple.preference.security?Privacy_LocalNetwork"
"""Opens the page of System Settings with the permission; ``open`` takes it."""

SystemAnswer = Literal["serves", "denies", "unknown"]
"""What the system's own Bonjour service says to a browse of ours; unknown where there is none, or it said nothing."""


class Verdict(Enum):
    """What is so."""

    WORKS = "works"
    NO_NETWORK = "no network"
    PERMISSION_OFF = "permission off"
    PERMISSION_STUCK = "permission on, but not working"
    MULTICAST_BLOCKED = "the network blocks multicast"
    NOBODY_ANSWERED = "nobody answered"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a test of the network found (:func:`discovery.network_test.look`)."""

    addresses: tuple[str, ...]
    """Of this machine, on networks with others."""
    send_errors: tuple[int, ...] = ()
    """The errno of each address from which a multicast packet could not be sent; 0 where it could."""
    heard_itself: bool = False
    """Whether a multicast packet of ours came back on some network."""
    answers: int = 0
    """Other machines that answered a multicast question."""
    reached_directly: bool = False
    """Whether a machine that is known otherwise (paired, or its address was typed) was reached by TCP."""
    system: SystemAnswer = "unknown"
    has_privacy: bool = False
    """Whether this system asks for the permission: macOS 15 and newer."""


def judge(seen: Seen) -> Verdict:
    """Pure. What other machines answered counts most: then it works, whatever else was odd."""
    if seen.answers:
        return Verdict.WORKS
    if not seen.addresses:
        return Verdict.NO_NETWORK
    refused = [number for number in seen.send_errors if number == errno.EHOSTUNREACH]
    if seen.has_privacy and refused and len(refused) == len(seen.send_errors):
        return Verdict.PERMISSION_STUCK if seen.system == "serves" else Verdict.PERMISSION_OFF
    if seen.has_privacy and seen.system == "denies":
        return Verdict.PERMISSION_OFF
    if not seen.heard_itself or seen.reached_directly:
        return Verdict.MULTICAST_BLOCKED
    return Verdict.NOBODY_ANSWERED


def advice(verdict: Verdict) -> tuple[str, str]:
    """For a person: what is so, and what they can do."""
    return _WORDS[verdict]


_PAGE = "System Settings, Privacy & Security, Local Network"
_WORDS = {
    Verdict.WORKS: ("This machine speaks with others on its network.", "Nothing is to be done."),
    Verdict.NO_NETWORK: ("This machine is in no network with others.", "Plug in a cable, or join a Wi-Fi network."),
    Verdict.PERMISSION_OFF: (
        "macOS does not let Pomona speak with other machines.",
        f"Open {_PAGE}, and switch Pomona on. If it is not listed, open Pomona again and allow it when asked.",
    ),
    Verdict.PERMISSION_STUCK: (
        "Pomona may use the local network, but macOS still holds its packets back.",
        f"Open {_PAGE}, switch Pomona off and on, then open Pomona again. It happens after a restart.",
    ),
    Verdict.MULTICAST_BLOCKED: (
        "The network does not carry multicast, by which machines find each other.",
        (
            "See that no firewall drops UDP to 224.0.0.251 and that the access point does not isolate its clients, "
            "or add the other machines by address."
        ),
    ),
    Verdict.NOBODY_ANSWERED: (
        "Packets leave this machine, but no other machine has answered.",
        (
            "Start Pomona on another machine of this network. If it stays unseen, add it by address: then the network "
            "does not carry multicast."
        ),
    ),
}
