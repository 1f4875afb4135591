"""Made-up nodes, paired and not."""

from __future__ import annotations

from itertools import combinations

import msgspec

from gui.formatting import GIB
from resources.node import MemoryParts, NodeResources, Versions
from runtime.cluster.links import Link, LinkEnd, NodePair
from runtime.cluster.nodes import KnownNode, UnpairedNode

MAC_VERSIONS = Versions("0.1.0", "0.32.4", "0.32.2", "3.12.8", "macOS 26.1")


def node(name: str, chip: str, total_gib: float, available_gib: float, *, virtual: bool = False) -> KnownNode:
    """A node with a little memory used by others."""
    resources = NodeResources(
        node_id=name.lower().replace(" ", "-"),
        name=name,
        chip=chip,
        memory_total_bytes=round(total_gib * GIB),
        memory_available_bytes=round(available_gib * GIB),
        virtual=virtual,
        versions=MAC_VERSIONS,
    )
    return KnownNode("127.0.0.1", 52000, resources)


def macs() -> tuple[KnownNode, ...]:
    """Four Macs that hold a large model together."""
    return (
        _as_fast(node("Studio Ultra", "M3 Ultra", 192, 178), 819),
        _as_fast(node("Studio Max", "M4 Max", 128, 117), 546),
        _as_fast(node("MacBook Pro", "M4 Pro", 48, 36), 273),
        _as_fast(node("Mac mini", "M4", 32, 25), 120),
    )


def capped_macs() -> tuple[KnownNode, ...]:
    """The same, with all that they say of themselves: a MacBook keeps half of its memory for its person."""
    return tuple(_telling(known, cap_share=0.5 if known.resources.chip == "M4 Pro" else 0.9) for known in macs())


def _telling(known: KnownNode, cap_share: float) -> KnownNode:
    has = known.resources
    total, others = has.memory_total_bytes, has.memory_total_bytes - has.memory_available_bytes
    cap = round(total * cap_share)
    resources = msgspec.structs.replace(
        has,
        memory_available_bytes=min(has.memory_available_bytes, cap),
        memory=MemoryParts(others, 0, 0, 0, total - others),
        memory_cap_bytes=cap,
        gpu_memory_limit_bytes=round(total * 0.85),
        gpu_cores=40,
        gpu_load=0.03,
        system_power_watts=24.0,
        gpu_temperature_celsius=41.0,
        disk_free_bytes=412 * GIB,
    )
    return msgspec.structs.replace(known, resources=resources)


def virtual_nodes(chip: str = "Apple M4 Pro") -> tuple[KnownNode, ...]:
    """The three virtual nodes of the demo."""
    return tuple(
        _as_fast(node(f"Virtual {name}", chip, gib, gib, virtual=True), 16)
        for name, gib in zip("ABC", (1, 2, 1), strict=True)
    )


def unequal_nodes() -> tuple[KnownNode, ...]:
    """A quick Mac with little memory free, a quick one, and a slow one."""
    return tuple(
        _as_fast(node(name, chip, 16, gib), rate)
        for name, chip, gib, rate in (
            ("MacBook Air", "M1", 2.0, 68),
            ("MacBook Pro", "M4 Max", 0.2, 546),
            ("Studio", "M2 Ultra", 6.0, 800),
        )
    )


def _as_fast(known: KnownNode, gb_per_second: int) -> KnownNode:
    resources = msgspec.structs.replace(
        known.resources,
        memory_bandwidth_bytes_per_second=gb_per_second * 10**9,
        memory_bandwidth_source="table",
    )
    return msgspec.structs.replace(known, resources=resources)


def like_nodes() -> tuple[tuple[KnownNode, ...], tuple[NodePair, ...]]:
    """Two Macs that are alike and a slow one, with Thunderbolt between all of them."""
    nodes = tuple(
        _as_fast(node(name, chip, 64, gib), rate)
        for name, chip, gib, rate in (
            ("Studio", "M2 Max", 50.0, 400),
            ("MacBook Pro", "M2 Max", 48.0, 400),
            ("Mac mini", "M2", 12.0, 100),
        )
    )
    pairs = []
    for one, other in combinations(sorted(known.resources.node_id for known in nodes), 2):
        ends = (LinkEnd(one, "en1", "169.254.1.1"), LinkEnd(other, "en1", "169.254.1.2"))
        pairs.append(NodePair((one, other), ((), ()), (Link("Thunderbolt", ends, 6e-5, 5e9),)))
    return nodes, tuple(pairs)


def many_nodes(count: int) -> tuple[KnownNode, ...]:
    """More nodes than most desks hold, some with long names."""
    names = ("MacBook Pro of somebody with a very long name", "Studio", "Mac mini in the cupboard", "Air", "iMac")
    chips = ("Apple M3 Ultra with an 80-core GPU", "M4 Max", "M4", "M2", "M1 Pro")
    rates = (819, 546, 120, 100, 200)
    return tuple(
        _as_fast(
            node(f"{names[index % 5]} {index + 1}", chips[index % 5], 64 + 16 * (index % 3), 50 + 9 * (index % 4)),
            rates[index % 5],
        )
        for index in range(count)
    )


def unpaired(*names: str) -> tuple[UnpairedNode, ...]:
    """Machines that are there and not paired; the first shows its code."""
    return tuple(
        UnpairedNode(f"{index:064x}", name, f"192.0.2.{index + 10}", 47665, "", shows_code=index == 0)
        for index, name in enumerate(names)
    )
