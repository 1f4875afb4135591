"""``pomona links``: what joins the nodes, how fast it is, and which way a job takes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from resources.rdma_verdict import RdmaVerdict, Thunderbolt, verdict_over_cable
from runtime.agent.folder import data_folder, open_home
from runtime.cli.nodes import look_around
from runtime.cluster.link_book import LinkBook
from runtime.cluster.link_survey import survey_links, thunderbolt_of
from runtime.cluster.links import ChosenBy, Link, NodePair
from runtime.cluster.meeting import introduce
from runtime.cluster.nodes import node_called
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

EXIT_JOINED, EXIT_APART = 0, 1
FASTEST = "fastest"
_MEGA, _GIGA = 1e6, 1e9


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """What was asked for on the command line."""

    seconds: float
    """How long to look for nodes."""
    only_here: bool
    """Look on this machine alone."""
    again: bool
    """Measure what is known already, too."""
    use: tuple[str, str, str] | None
    """Two nodes, and the link between them that is to be used: its name, one of its addresses, or ``fastest``."""
    as_json: bool


class LinkReport(msgspec.Struct, frozen=True):
    """One link in the JSON report."""

    name: str
    interfaces: tuple[str, str]
    addresses: tuple[str, str]
    """Of each node in the order of ``nodes``, as the other one dials it."""
    rtt_seconds: float
    bytes_per_second: float
    used: bool
    """Whether a job takes it."""


class PairReport(msgspec.Struct, frozen=True):
    """Two nodes in the JSON report."""

    nodes: tuple[str, str]
    """Names."""
    node_ids: tuple[str, str]
    links: tuple[LinkReport, ...]
    chosen_by: ChosenBy
    trouble: str
    """Why there is no link; empty if there is."""
    rdma: RdmaVerdict | None = None
    """Whether RDMA works between them, and what is missing; None if no Thunderbolt cable joins them."""


def run_links(options: LinkOptions) -> int:
    """Find the nodes, measure, say it; returns the exit status: 1 if two nodes have no link.

    Raises :class:`PomonaError`.
    """
    reports = asyncio.run(_links(options))
    if options.as_json:
        sys.stdout.write(msgspec.json.encode(reports).decode() + "\n")
    elif reports:
        sys.stdout.write("\n".join(line for report in reports for line in report_lines(report)) + "\n")
    else:
        sys.stderr.write("Links are between nodes, and fewer than two answered; `pomona nodes` shows which.\n")
    return EXIT_JOINED if reports and all(report.links for report in reports) else EXIT_APART


async def _links(options: LinkOptions) -> list[PairReport]:
    home = open_home(data_folder())
    nodes, _unpaired = await look_around(home, options.seconds, only_here=options.only_here)
    await introduce(home, nodes)
    names = {node.resources.node_id: node.resources.name for node in nodes}
    try:
        pairs = await survey_links(home, nodes, again=options.again)
        if options.use is not None:
            pairs = _use(home, nodes, pairs, options.use)
    except OSError as error:
        raise PomonaError(f"The folder {home.folder} cannot be used ({error.strerror}).") from error
    thunderbolt = await thunderbolt_of(home, nodes)

    def verdict(pair: NodePair) -> RdmaVerdict | None:
        here, there = ((names[node_id], thunderbolt.get(node_id, Thunderbolt())) for node_id in pair.node_ids)
        return verdict_over_cable(here, there)

    return [report_of(pair, names, verdict(pair)) for pair in pairs]


def _use(
    home: Home, nodes: Sequence[KnownNode], pairs: Sequence[NodePair], use: tuple[str, str, str]
) -> tuple[NodePair, ...]:
    """Remember the person's choice; the pairs as they are then."""
    one, other = (node_called(nodes, word).resources.node_id for word in use[:2])
    pair = next((pair for pair in pairs if set(pair.node_ids) == {one, other}), None)
    if pair is None:
        raise PomonaError(f"{use[0]} and {use[1]} are the same node; name two.")
    wanted = None if use[2].lower() == FASTEST else _link(pair, use[2]).addresses
    LinkBook(home.folder).want(*pair.node_ids, wanted)
    return tuple(msgspec.structs.replace(each, wanted=wanted) if each is pair else each for each in pairs)


def _link(pair: NodePair, word: str) -> Link:
    found = [link for link in pair.links if word.lower() == link.name.lower() or word in link.addresses]
    if len(found) != 1:
        known = ", ".join(f"{link.name} ({' and '.join(link.addresses)})" for link in pair.links) or pair.trouble
        raise PomonaError(f"{word} names no one link between them; there is: {known}.")
    return found[0]


def report_of(pair: NodePair, names: dict[str, str], rdma: RdmaVerdict | None = None) -> PairReport:
    """What is said of a pair; the fastest link comes first."""
    links = sorted(pair.links, key=lambda link: link.rtt_seconds)
    return PairReport(
        (names[pair.node_ids[0]], names[pair.node_ids[1]]),
        pair.node_ids,
        tuple(
            LinkReport(
                link.name,
                (link.ends[0].interface, link.ends[1].interface),
                link.addresses,
                link.rtt_seconds,
                link.bytes_per_second,
                used=link == pair.chosen,
            )
            for link in links
        ),
        pair.chosen_by,
        pair.trouble,
        rdma,
    )


def report_lines(report: PairReport) -> list[str]:
    """A pair for people: the link that a job takes is marked."""
    lines = [f"{report.nodes[0]} and {report.nodes[1]}"]
    if not report.links:
        return [*lines, f"  no link: {report.trouble}"]
    width = max(len(link.name) for link in report.links)
    for link in report.links:
        why = {"speed": "the fastest", "person": "your choice"}[report.chosen_by]
        lines.append(
            f"  {'→' if link.used else ' '} {link.name:<{width}}  {link.rtt_seconds * 1000:7.2f} ms"
            f"  {rate_words(link.bytes_per_second):>9}  {link.addresses[0]} to {link.addresses[1]}"
            + (f"  used: {why}" if link.used else "")
        )
    if report.rdma is not None:
        possible = {True: "RDMA works over the cable", False: "No RDMA", None: "It is not known whether RDMA works"}
        lines.append(f"  {possible[report.rdma.possible]}{':' if report.rdma.reasons else ''}")
        lines += [f"    {reason}" for reason in report.rdma.reasons]
    return lines


def rate_words(bytes_per_second: float) -> str:
    """``12 MB/s``, ``1.2 GB/s``."""
    if bytes_per_second >= _GIGA:
        return f"{bytes_per_second / _GIGA:.1f} GB/s"
    return f"{bytes_per_second / _MEGA:.0f} MB/s"
