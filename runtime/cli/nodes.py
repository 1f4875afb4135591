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
from resources.sleep import slept_words
from runtime.agent.folder import data_folder, open_home
from runtime.cli.memory_cap import choose_cap
from runtime.cluster.nodes import NodeWatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode, UnpairedNode

EXIT_FOUND, EXIT_NONE = 0, 1
_GIB = 1 << 30
_GB = 10**9


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
) -> tuple[tuple[KnownNode, ...], tuple[UnpairedNode, ...]]:
    """All nodes that answer within ``seconds``, or until those that are not paired are ``enough``.

    ``only_here`` looks on this machine alone. Raises :class:`PomonaError`.
    """
    usable: tuple[KnownNode, ...] = ()
    unpaired: tuple[UnpairedNode, ...] = ()
    over = asyncio.Event()

    def keep(nodes: tuple[KnownNode, ...]) -> None:
        nonlocal usable
        usable = nodes

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


def describe(node: NodeResources) -> str:
    """One line for a person; what is unknown is left out."""
    cores = f", {node.gpu_cores} GPU cores" if node.gpu_cores is not None else ""
    parts = [f"{node.name}: {node.chip}{cores}", _memory_words(node)]
    if node.gpu_memory_limit_bytes is not None:
        parts.append(f"GPU limit {node.gpu_memory_limit_bytes / _GIB:.1f} GB")
    if node.memory_bandwidth_bytes_per_second is not None:
        parts.append(f"{node.memory_bandwidth_bytes_per_second / _GB:.0f} GB/s ({node.memory_bandwidth_source})")
    parts += _load_words(node)
    if node.disk_free_bytes is not None:
        parts.append(f"disk {node.disk_free_bytes / _GIB:.0f} GB free")
    if node.battery is not None and not node.battery.on_mains:
        parts.append(f"battery {node.battery.percent}%")
    parts += [
        words
        for words, applies in (
            ("too warm", node.thermal_warning),
            ("Low Power Mode", node.low_power_mode),
            (f"memory pressure {node.memory_pressure}", node.memory_pressure in {"warning", "critical"}),
        )
        if applies
    ]
    if node.last_sleep is not None:
        parts.append(slept_words(node.last_sleep))
    versions = node.versions
    parts.append(f"{versions.system}, pomona {versions.pomona}, mlx {versions.mlx}, mlx-lm {versions.mlx_lm}")
    return "; ".join(parts)


def _memory_words(node: NodeResources) -> str:
    words = f"{node.memory_available_bytes / _GIB:.1f} of {node.memory_total_bytes / _GIB:.1f} GB for a model now"
    details = []
    if (parts := node.memory) is not None:
        details.append(f"others have {parts.others_bytes / _GIB:.1f}")
        if parts.ours_bytes:
            details.append(
                f"models {parts.ours_bytes / _GIB:.1f}: weights {parts.weight_bytes / _GIB:.1f}, "
                f"caches {parts.kv_bytes / _GIB:.1f}"
            )
    if node.memory_cap_bytes is not None and node.memory_cap_bytes < node.memory_total_bytes:
        chosen = "" if node.memory_cap_is_chosen else " as usual"
        details.append(f"Pomona may use {node.memory_cap_bytes / _GIB:.1f} at most{chosen}")
    return f"{words} ({', '.join(details)})" if details else words


def _load_words(node: NodeResources) -> list[str]:
    words = [
        f"{what} {load:.0%} busy" for what, load in (("GPU", node.gpu_load), ("CPU", node.cpu_load)) if load is not None
    ]
    if node.system_power_watts is not None:
        words.append(f"{node.system_power_watts:.0f} W")
    if node.gpu_temperature_celsius is not None:
        words.append(f"GPU {node.gpu_temperature_celsius:.0f} °C")
    return words
