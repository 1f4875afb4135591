"""Whether two Macs can use RDMA over their cable, and in words what is missing.

It takes Thunderbolt 5 on both ends, macOS 26.2 on both, RDMA enabled on both (in Recovery), and an active port. A Mac
with Thunderbolt 4 lists ``rdma_`` devices on macOS 26 all the same (exo issue 1813), and nothing makes them work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from resources.mac.thunderbolt import ThunderboltPort

FIRST_MACOS = (26, 2)

_WITH_THUNDERBOLT_5 = frozenset(
    f"Apple {name}" for name in ("M3 Ultra", "M4 Pro", "M4 Max", "M5 Pro", "M5 Max", "M5 Ultra")
)
_WITHOUT = frozenset(
    f"Apple {name}"
    for name in (
        *("M1", "M1 Pro", "M1 Max", "M1 Ultra", "M2", "M2 Pro", "M2 Max", "M2 Ultra", "M3", "M3 Pro", "M3 Max"),
        *("M4", "M5"),
    )
)
"""Apple's specifications of the Macs that have been sold with these chips; asked only where no port says it itself."""


@dataclass(frozen=True, slots=True)
class RdmaFacts:
    """What one Mac says; None is unknown."""

    name: str
    thunderbolt_5: bool | None
    macos: tuple[int, ...] | None
    enabled: bool | None
    port_active: bool | None
    """Of the port with the cable."""


class Cable(msgspec.Struct, frozen=True):
    """A Thunderbolt port with Macs on its other end."""

    domain_id: Annotated[str, msgspec.Meta(max_length=80)]
    peer_domain_ids: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=80)], ...], msgspec.Meta(max_length=16)]
    """The domain ids of those Macs' own ports."""
    rdma_active: bool | None = None


class Thunderbolt(msgspec.Struct, frozen=True):
    """What a node says of its Thunderbolt; None is unknown."""

    is_version_5: bool | None = None
    macos: tuple[int, ...] | None = None
    rdma_enabled: bool | None = None
    cables: Annotated[tuple[Cable, ...], msgspec.Meta(max_length=16)] = ()

    def facts(self, name: str, cable: Cable) -> RdmaFacts:
        """Of the Mac called ``name`` and one of its cables."""
        return RdmaFacts(name, self.is_version_5, self.macos, self.rdma_enabled, cable.rdma_active)


class RdmaVerdict(msgspec.Struct, frozen=True):
    """``possible`` is None if nothing is known to be missing but something is unknown."""

    possible: bool | None
    reasons: tuple[str, ...]
    """Sentences for a person: what is missing, or what could not be found out. Empty if RDMA is possible."""


def has_thunderbolt_5(chip: str, ports: Iterable[ThunderboltPort]) -> bool | None:
    """Whether a Mac has Thunderbolt 5: by what its ports say, else by its chip."""
    said = [port.is_thunderbolt_5 for port in ports]
    if any(said):
        return True
    if chip in _WITH_THUNDERBOLT_5:
        # Some of its ports may be slower ones, and a link of 40 Gbit/s says nothing of its ends.
        return True
    if chip in _WITHOUT or False in said:
        return False
    return None


def verdict_over_cable(here: tuple[str, Thunderbolt], there: tuple[str, Thunderbolt]) -> RdmaVerdict | None:
    """The verdict on two Macs, each with its name; None if no cable joins them, as far as they say."""
    for near in here[1].cables:
        for far in there[1].cables:
            if far.domain_id in near.peer_domain_ids or near.domain_id in far.peer_domain_ids:
                return rdma_verdict(here[1].facts(here[0], near), there[1].facts(there[0], far))
    return None


def rdma_verdict(here: RdmaFacts, there: RdmaFacts) -> RdmaVerdict:
    """Whether RDMA works between two Macs that share a cable."""
    ends = (here, there)
    without = [end.name for end in ends if end.thunderbolt_5 is False]
    if without:
        # Nothing else is worth a word: no setting helps a port that cannot.
        have = "has" if len(without) == 1 else "have"
        return RdmaVerdict(
            possible=False,
            reasons=(f"RDMA needs Thunderbolt 5 on both ends; {' and '.join(without)} {have} an older Thunderbolt.",),
        )
    missing: list[str] = []
    unknown: list[str] = []
    for end in ends:
        _judge(end, missing, unknown)
    possible = False if missing else (None if unknown else True)
    return RdmaVerdict(possible, (*missing, *unknown))


def _judge(end: RdmaFacts, missing: list[str], unknown: list[str]) -> None:
    if end.thunderbolt_5 is None:
        unknown.append(f"It is not known whether {end.name} has Thunderbolt 5, which RDMA needs.")
    if end.macos is None:
        unknown.append(f"The macOS version of {end.name} is not known; RDMA needs 26.2 or newer.")
    elif end.macos < FIRST_MACOS:
        # An older system has no rdma_ctl, so that RDMA is not enabled there goes without saying.
        version = ".".join(map(str, end.macos))
        missing.append(f"{end.name} runs macOS {version}; RDMA needs 26.2 or newer: update it.")
        return
    if end.enabled is False:
        if end.thunderbolt_5:
            missing.append(
                f"RDMA is off on {end.name}: start it in Recovery, open Terminal there, run `rdma_ctl enable`, restart."
            )
        else:
            missing.append(f"RDMA is off on {end.name}.")
        return
    if end.enabled is None:
        unknown.append(f"{end.name} does not say whether RDMA is on.")
    if end.port_active is False:
        missing.append(
            f"The Thunderbolt port of {end.name} is not active for RDMA: check that the cable is a Thunderbolt 5 one."
        )
    elif end.port_active is None:
        unknown.append(f"{end.name} does not say whether its Thunderbolt port is active for RDMA.")
