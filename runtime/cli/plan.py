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
from runtime.errors import PomonaError
from runtime.models.demo import demo_model_folder
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.from_resources import plan_nodes
from runtime.planning.places import UNKNOWN_SPEED, PlanNode, table_speed
from runtime.planning.plan import Pins, make_plan

if TYPE_CHECKING:
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


def run_plan(options: PlanOptions) -> int:
    """Plan, say it, and return the exit status: 0 it fits, 2 it does not. Raises :class:`PomonaError` for bad input."""
    layout = read_planning_layout(demo_model_folder() if options.model == "demo" else Path(options.model))
    nodes = [_imagined(node) for node in options.nodes] or _in_reach(layout, options.look_seconds)
    made = make_plan(
        layout,
        nodes,
        options.split,
        options.mode,
        goal=options.goal,
        context_tokens=options.context_tokens,
        pins=_pins(options, nodes),
    )
    report = plan_report(made, options.mode, options.goal)
    if options.as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    elif report.refusal or not report.predicted:
        sys.stderr.write(f"pomona: {report.refusal}\n")
    else:
        sys.stdout.write("\n".join([*report_lines(report, report.predicted, layout.name), ""]))
    return EXIT_FITS if report.fits else EXIT_REFUSED


def _imagined(node: ImaginedNode) -> PlanNode:
    speed = UNKNOWN_SPEED if node.bytes_per_second is None else table_speed(node.bytes_per_second)
    return PlanNode(node.name, node.name, node.budget_bytes, speed)


def _in_reach(layout: ModelLayout, seconds: float) -> list[PlanNode]:
    found, _unpaired = asyncio.run(look_around(open_home(data_folder()), seconds))
    if not found:
        raise PomonaError(
            "There is no node to plan for: no node is in reach; start Pomona on one, or imagine one as in "
            "--node Studio=96@400 (name, GB, GB/s)."
        )
    return plan_nodes(layout, (node.resources for node in found))


def _pins(options: PlanOptions, nodes: list[PlanNode]) -> Pins:
    ids = {node.name: node.node_id for node in nodes}
    for name in (*options.needed, *options.left_out, *(name for group in options.groups for name in group)):
        if name not in ids:
            raise PomonaError(f"There is no node named {name}; there are {', '.join(ids)}.")
    return Pins(
        frozenset(ids[name] for name in options.needed),
        frozenset(ids[name] for name in options.left_out),
        tuple(tuple(ids[name] for name in group) for group in options.groups),
    )
