"""``pomona plan``: the best split of a model over real or imagined nodes, or what a split by hand would cost."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.folder import data_folder, open_home
from runtime.cli.nodes import look_around
from runtime.cli.plan_report import plan_report, report_lines
from runtime.cluster.link_survey import measured_links
from runtime.errors import PomonaError
from runtime.models.demo import demo_model_folder
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.cost import LinkSpeed
from runtime.planning.from_resources import plan_nodes
from runtime.planning.places import UNKNOWN_LINK, UNKNOWN_SPEED, Link, PlanNode, table_speed
from runtime.planning.plan import Pins, make_plan
from runtime.planning.refusals import tensor_sizes, tensor_sizes_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.values import Goal, Mode

EXIT_FITS, EXIT_REFUSED = 0, 2

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class ImaginedNode:
    """A node as written on the command line."""

    name: str
    budget_bytes: int
    bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class ImaginedLink:
    """The way between two imagined nodes, by their names."""

    names: tuple[str, str]
    speed: LinkSpeed


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A plan as asked for on the command line."""

    model: str
    """A model's folder, or ``demo``."""
    nodes: tuple[ImaginedNode, ...]
    """Empty: the nodes in reach."""
    goal: Goal
    split: tuple[int, ...] | None
    mode: Mode
    context_tokens: int | None
    """None: 8192, or the longest that the model was made for if that is less."""
    as_json: bool
    needed: tuple[str, ...] = ()
    """Names of nodes that take part whatever it costs."""
    left_out: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """Names of nodes that share every layer of a stage."""
    links: tuple[ImaginedLink, ...] = ()
    """Between imagined nodes; those in reach have their measured ones."""
    look_seconds: float = 4.0
    """How long to look for nodes in reach."""


def parse_node(text: str) -> ImaginedNode:
    """``NAME=BUDGET[@GB/s]``: ``Studio=96@400``, ``Air=500MB``. Without a unit, GB. Raises ValueError."""
    name, _, rest = text.rpartition("=")
    budget, at, speed = rest.partition("@")
    number = budget.strip().upper().removesuffix("B")
    unit = _UNITS.get(number[-1:])
    count = float(number[:-1] if unit else number) * (unit or _UNITS["G"])
    rate = float(speed.strip().upper().removesuffix("GB/S")) * 1e9 if at else None
    if not name.strip() or not 0 <= count < 2**53 or not 1e6 <= (rate or 1e9) < 1e16:
        raise ValueError(text)
    return ImaginedNode(name.strip(), int(count), rate)


def parse_link(text: str) -> ImaginedLink:
    """``NAME,NAME=MILLISECONDS[@GB/s]``: ``Studio,Pro=0.05@5``. Raises ValueError."""
    names, _, rest = text.rpartition("=")
    one, comma, other = (part.strip() for part in names.partition(","))
    rtt, at, speed = rest.partition("@")
    milliseconds = float(rtt)
    rate = float(speed.strip().upper().removesuffix("GB/S")) * 1e9 if at else UNKNOWN_LINK.bytes_per_second
    if not (one and comma and other and one != other and 0 <= milliseconds <= 1e5 and 1e3 <= rate < 1e16):
        raise ValueError(text)
    return ImaginedLink((one, other), LinkSpeed(milliseconds / 1e3, rate))


def run_plan(options: PlanOptions) -> int:
    """Plan, say it, and return the exit status: 0 it fits, 2 it does not. Raises :class:`PomonaError` for bad input."""
    layout = read_planning_layout(demo_model_folder() if options.model == "demo" else Path(options.model))
    if options.nodes:
        nodes = [_imagined(node) for node in options.nodes]
        links = _imagined_links(options)
    else:
        nodes, links = _in_reach(layout, options)
    made = make_plan(
        layout,
        nodes,
        options.split,
        options.mode,
        goal=options.goal,
        context_tokens=options.context_tokens,
        links=links,
        pins=_pins(options, nodes),
    )
    sizes = tensor_sizes(layout, len(nodes)) if options.mode == "tensor" else ()
    report = plan_report(made, options.mode, options.goal, sizes)
    if options.as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    elif report.refusal or not report.predicted:
        sys.stderr.write(f"pomona: {report.refusal}\n")
    else:
        lines = report_lines(report, report.predicted, layout.name)
        sys.stdout.write("\n".join([*lines, *([tensor_sizes_words(layout, len(nodes))] if sizes else []), ""]))
    return EXIT_FITS if report.fits else EXIT_REFUSED


def _imagined(node: ImaginedNode) -> PlanNode:
    speed = UNKNOWN_SPEED if node.bytes_per_second is None else table_speed(node.bytes_per_second)
    return PlanNode(node.name, node.name, node.budget_bytes, speed)


def _imagined_links(options: PlanOptions) -> tuple[Link, ...]:
    names = [node.name for node in options.nodes]
    for link in options.links:
        for name in link.names:
            if name not in names:
                raise PomonaError(_no_node(name, names))
    return tuple(Link(*link.names, link.speed) for link in options.links)


def _in_reach(layout: ModelLayout, options: PlanOptions) -> tuple[list[PlanNode], tuple[Link, ...]]:
    """The nodes in reach and their links, of which those that are not known yet are measured."""
    if options.links:
        raise PomonaError("--link is for nodes that you describe with --node; those in reach have their measured ones.")
    found, links = asyncio.run(_look(options.look_seconds))
    if not found:
        raise PomonaError(
            "There is no node to plan for: no node is in reach; start Pomona on one, or imagine one as in "
            "--node Studio=96@400 (name, GB, GB/s)."
        )
    return plan_nodes(layout, (node.resources for node in found)), links


async def _look(seconds: float) -> tuple[tuple[KnownNode, ...], tuple[Link, ...]]:
    home = open_home(data_folder())
    found, _unpaired = await look_around(home, seconds)
    return found, await measured_links(home, found)


def _pins(options: PlanOptions, nodes: list[PlanNode]) -> Pins:
    ids = {node.name: node.node_id for node in nodes}
    for name in (*options.needed, *options.left_out, *(name for group in options.groups for name in group)):
        if name not in ids:
            raise PomonaError(_no_node(name, ids))
    return Pins(
        frozenset(ids[name] for name in options.needed),
        frozenset(ids[name] for name in options.left_out),
        tuple(tuple(ids[name] for name in group) for group in options.groups),
    )


def _no_node(name: str, names: Iterable[str]) -> str:
    return f"There is no node named {name}; there are {', '.join(names)}."
