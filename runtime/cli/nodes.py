"""``pomona nodes``: which nodes can be used from here, and what each one has."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.key import data_folder, load_key
from runtime.cluster.nodes import NodeWatcher

if TYPE_CHECKING:
    from resources.node import NodeResources
    from runtime.cluster.nodes import KnownNode

EXIT_FOUND, EXIT_NONE = 0, 1
_GIB = 1 << 30
_GB = 10**9


def run_nodes(seconds: float, *, as_json: bool) -> int:
    """Look for ``seconds``, say what was found, and return the exit status: 1 if there is no node."""
    nodes = asyncio.run(find_nodes(load_key(data_folder()), seconds))
    if as_json:
        sys.stdout.write(msgspec.json.encode(nodes).decode() + "\n")
    elif nodes:
        sys.stdout.write("".join(describe(node.resources) + "\n" for node in nodes))
    else:
        sys.stderr.write(
            "No node answered. `pomona agent` makes this machine one; `pomona doctor` looks for trouble.\n"
        )
    return EXIT_FOUND if nodes else EXIT_NONE


async def find_nodes(key: str, seconds: float) -> tuple[KnownNode, ...]:
    """All nodes that answer with ``key`` within ``seconds``. Raises :class:`runtime.errors.PomonaError`."""
    found: tuple[KnownNode, ...] = ()

    def keep(nodes: tuple[KnownNode, ...]) -> None:
        nonlocal found
        found = nodes

    watcher = NodeWatcher(key, keep)
    await watcher.start()
    try:
        await asyncio.sleep(seconds)
    finally:
        await watcher.close()
    return found


def describe(node: NodeResources) -> str:
    """One line for a person; what is unknown is left out."""
    cores = f", {node.gpu_cores} GPU cores" if node.gpu_cores is not None else ""
    parts = [
        f"{node.name}: {node.chip}{cores}",
        f"{node.memory_available_bytes / _GIB:.1f} of {node.memory_total_bytes / _GIB:.1f} GB free",
    ]
    if node.gpu_memory_limit_bytes is not None:
        parts.append(f"GPU limit {node.gpu_memory_limit_bytes / _GIB:.1f} GB")
    if node.memory_bandwidth_bytes_per_second is not None:
        parts.append(f"{node.memory_bandwidth_bytes_per_second / _GB:.0f} GB/s ({node.memory_bandwidth_source})")
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
    parts.append(f"{node.versions.system}, mlx {node.versions.mlx}, mlx-lm {node.versions.mlx_lm}")
    return "; ".join(parts)
