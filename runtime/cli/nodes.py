"""``pomona nodes``: which nodes can be used from here, what each one has, and which could be paired."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from discovery.browser import Browser
from discovery.interfaces import all_interfaces, loopback_interfaces
from resources.node import NodeResources  # msgspec resolves the annotation when it decodes
from resources.words import describe
from runtime.agent.folder import data_folder, open_home
from runtime.cli.memory_cap import choose_cap
from runtime.cluster.node_watcher import NodeWatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode, UnpairedNode

EXIT_FOUND, EXIT_NONE = 0, 1


class Listing(msgspec.Struct, frozen=True):
    """One node in the JSON list."""

    node_id: str
    name: str
    host: str
    port: int
    paired: bool
    """Whether it can be used from here: it is paired with this machine, or is this machine."""
    shows_code: bool = False
    """Whether a node that is not paired waits for its code to be typed."""
    resources: NodeResources | None = None
    """What it has; unknown before it is paired."""


def run_nodes(seconds: float, at_most: tuple[str, str] | None = None, *, only_here: bool, as_json: bool) -> int:
    """Look for ``seconds``, say what was found, and return the exit status: 1 if there is no node.

    ``at_most`` is a node and how much of its memory Pomona may use from now on. Raises :class:`PomonaError`.
    """
    usable, unpaired = asyncio.run(_look_and_set(open_home(data_folder()), seconds, at_most, only_here=only_here))
    if as_json:
        listings = [_listing(node) for node in usable] + [_unpaired_listing(node) for node in unpaired]
        sys.stdout.write(msgspec.json.encode(listings).decode() + "\n")
    elif usable or unpaired:
        sys.stdout.write("".join(describe(node.resources) + "\n" for node in usable))
        sys.stdout.write("".join(f"{node.name}: not paired ({node.node_id[:12]}); pomona pair\n" for node in unpaired))
    else:
        sys.stderr.write(
            "No node answered. `pomona agent` makes this machine one; `pomona doctor` looks for trouble.\n"
        )
    return EXIT_FOUND if usable or unpaired else EXIT_NONE


async def _look_and_set(
    home: Home, seconds: float, at_most: tuple[str, str] | None, *, only_here: bool
) -> tuple[tuple[KnownNode, ...], tuple[UnpairedNode, ...]]:
    usable, unpaired = await look_around(home, seconds, only_here=only_here)
    if at_most is not None:
        await choose_cap(home, usable, *at_most)
        usable, unpaired = await look_around(home, seconds, only_here=only_here)
    return usable, unpaired


async def look_around(
    home: Home,
    seconds: float,
    *,
    only_here: bool = False,
    enough: Callable[[tuple[UnpairedNode, ...]], bool] = lambda _: False,
    enough_usable: Callable[[tuple[KnownNode, ...]], bool] = lambda _: False,
) -> tuple[tuple[KnownNode, ...], tuple[UnpairedNode, ...]]:
    """All nodes that answer within ``seconds``, or until those that are not paired are ``enough``, or the others.

    ``only_here`` looks on this machine alone. Raises :class:`PomonaError`.
    """
    usable: tuple[KnownNode, ...] = ()
    unpaired: tuple[UnpairedNode, ...] = ()
    over = asyncio.Event()

    def keep(nodes: tuple[KnownNode, ...]) -> None:
        nonlocal usable
        usable = nodes
        if enough_usable(nodes):
            over.set()

    def keep_unpaired(nodes: tuple[UnpairedNode, ...]) -> None:
        nonlocal unpaired
        unpaired = nodes
        if enough(nodes):
            over.set()

    look = loopback_interfaces if only_here else all_interfaces
    watcher = NodeWatcher(home, keep, keep_unpaired, browser=partial(Browser, look=look))
    await watcher.start()
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        pass
    finally:
        await watcher.close()
    return usable, unpaired


def _listing(node: KnownNode) -> Listing:
    has = node.resources
    return Listing(has.node_id, has.name, node.host, node.port, paired=True, resources=has)


def _unpaired_listing(node: UnpairedNode) -> Listing:
    return Listing(node.node_id, node.name, node.host, node.port, paired=False, shows_code=node.shows_code)
