"""Where a command runs a model: which model, on which nodes, with which split."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discovery.home import temporary_home
from runtime.agent.folder import data_folder, open_home
from runtime.cli.model_nodes import called, named_nodes
from runtime.cli.nodes import look_around
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from runtime.cluster.link_survey import measured_links
from runtime.cluster.model_names import DEMO, session_folder
from runtime.errors import PomonaError
from runtime.models.cache_folder import cache_folder
from runtime.models.demo import demo_model_folder
from runtime.models.folder_names import folder_of
from runtime.models.manifest import MANIFEST_NAME
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import PlanNode, Refusal, make_plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Goal, Link, Mode, Plan

_DEMO_NODES = 3
_FIND_SECONDS = 20.0
_LOOK_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """What to run and where, as asked for on the command line."""

    model: str
    """A folder, a name in the store or on the hub, or ``demo``."""
    nodes: tuple[str, ...] = ()
    """Names of nodes, or the beginnings of their ids; empty: all in reach."""
    virtual_nodes: int | None = None
    """So many on this machine instead."""
    split: tuple[int, ...] | None = None
    mode: Mode = "pipeline"
    goal: Goal | None = None
    """None is an even split on virtual nodes, and the fastest chat on real ones."""
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Everything that a session needs."""

    home: Path
    folder: Path
    layout: ModelLayout
    nodes: Sequence[KnownNode]
    options: PlaceOptions
    links: tuple[Link, ...] = ()
    """Between the nodes, as measured."""

    @property
    def folder_on(self) -> tuple[str, ...] | None:
        """Which nodes may use the folder in place: a folder of our store is not whole, so none."""
        return () if (self.folder / MANIFEST_NAME).is_file() else None

    def plan(self, split: Sequence[int] | None = None) -> Plan:
        """The plan as asked for, or with another split. Raises :class:`PomonaError` with the reason for none."""
        planned = plan_nodes(self.layout, (node.resources for node in self.nodes))
        return _plan(self.layout, planned, self.options, split or self.options.split, self.links)


@asynccontextmanager
async def placed(options: PlaceOptions) -> AsyncIterator[Place]:
    """Find or start the nodes; virtual ones end with the block. Raises :class:`PomonaError`."""
    count = options.virtual_nodes
    if count is None and options.model == DEMO and not options.nodes:
        count = _DEMO_NODES
    if count is None:
        found = await _in_reach(options.nodes)
        folder = await _folder(options.model, found)
        links = await measured_links(open_home(data_folder()), found)
        layout = await asyncio.to_thread(read_planning_layout, folder)
        yield Place(data_folder(), folder, layout, found, options, links)
        return
    folder = await _folder(options.model)
    layout = await asyncio.to_thread(read_planning_layout, folder)
    nodes = virtual_nodes(count)
    # Whether the split can be is known before anything starts: the agents will have these very budgets.
    _plan(layout, [PlanNode(node.name, node.name, node.memory_bytes) for node in nodes], options, options.split)
    with ExitStack() as stack:
        home = stack.enter_context(temporary_home())
        agents = stack.enter_context(VirtualNodes(nodes, home, cache_folder() / "demo.log"))
        started = await asyncio.to_thread(agents.started)
        found = await _started(home.folder, [agent.node_id for agent in started])
        yield Place(home.folder, folder, layout, found, options)


async def _folder(name: str, nodes: Sequence[KnownNode] = ()) -> Path:
    """The model's; this machine's home is not needed for the demo or a folder, and not made for them."""
    if name == DEMO:
        return await asyncio.to_thread(demo_model_folder, lambda: note("Preparing the demo model; this happens once."))
    if await asyncio.to_thread(Path(name).exists):
        return await asyncio.to_thread(folder_of(Path(name)).absolute)
    return await session_folder(open_home(data_folder()), name, nodes=nodes)


async def _in_reach(names: Sequence[str]) -> list[KnownNode]:
    """The nodes with these names, in this order, or all that answer within a few seconds."""
    home = open_home(data_folder())

    def complete(nodes: Sequence[KnownNode]) -> bool:
        return bool(names) and all(called(name, nodes) for name in names)

    usable, _unpaired = await look_around(home, _FIND_SECONDS if names else _LOOK_SECONDS, enough_usable=complete)
    if not usable:
        raise PomonaError(
            "No node is in reach; `pomona agent` makes this machine one, and --virtual-nodes 2 goes without."
        )
    return named_nodes(usable, names) or list(usable)


async def _started(home: Path, node_ids: Sequence[str]) -> list[KnownNode]:
    """Nodes of this machine that were just started, in this order."""

    def complete(nodes: Sequence[KnownNode]) -> bool:
        return _ids(nodes) >= set(node_ids)

    nodes, _unpaired = await look_around(open_home(home), _FIND_SECONDS, enough_usable=complete)
    found = {node.resources.node_id: node for node in nodes}
    if not complete(nodes):
        raise PomonaError(
            f"Only {len(found)} of {len(node_ids)} nodes were found within {_FIND_SECONDS:.0f} s; "
            "check that multicast works on this machine's loopback."
        )
    return [found[node_id] for node_id in node_ids]


def _ids(nodes: Sequence[KnownNode]) -> set[str]:
    return {node.resources.node_id for node in nodes}


def _plan(
    layout: ModelLayout,
    nodes: Sequence[PlanNode],
    options: PlaceOptions,
    split: Sequence[int] | None,
    links: Sequence[Link] = (),
) -> Plan:
    real = options.virtual_nodes is None and options.model != DEMO
    goal = options.goal or ("chat" if real else "even")
    plan = make_plan(layout, nodes, split, options.mode, goal=goal, context_tokens=options.context_tokens, links=links)
    if isinstance(plan, Refusal):
        raise PomonaError(plan.reason)
    return plan


def note(text: str) -> None:
    """A line for a person, beside what a command prints."""
    sys.stderr.write(f"{text}\n")
