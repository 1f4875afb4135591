"""Memory bandwidth of Apple's chips, as Apple specifies it. A chip that is not here has to be measured.

The name alone does not tell: an M4 Max has 410 or 546 GB/s with 32 or 40 GPU cores, an M6 153 or 170 by its memory.

Sources, by the letter behind each line: A `kennss/SiliconScope` Bottleneck.swift; B `rlindsey2/sunkcost`
data/hardware.json, which links support.apple.com and apple.com; C the public list "Manual Apple Silicon GPU
specifications"; D Apple's newsroom of August 2026; E edu-observatory.org Silicon list; F lowyat.net 2026/385170;
G SiliconScope release 4.9.2. GPU cores of the smaller M1 and M2 are general knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass

GB = 10**9
"""Bandwidth is specified in powers of ten."""
GIB = 1 << 30
"""Memory is sold in powers of two."""


@dataclass(frozen=True, slots=True)
class ChipVariant:
    """One line of the table."""

    chip: str
    gpu_cores: tuple[int, ...]
    bandwidth_gb_per_second: int
    memory_gib: tuple[int, ...] = ()
    """Sizes that this line is for; empty if the memory makes no difference."""


CHIP_TABLE = (
    ChipVariant("Apple M1", (7, 8), 68),  # A C E
    ChipVariant("Apple M1 Pro", (14, 16), 200),  # A E
    ChipVariant("Apple M1 Max", (24, 32), 400),  # A E
    ChipVariant("Apple M1 Ultra", (48, 64), 800),  # A E
    ChipVariant("Apple M2", (8, 10), 100),  # A C E
    ChipVariant("Apple M2 Pro", (16, 19), 200),  # A C E
    ChipVariant("Apple M2 Max", (30, 38), 400),  # A C E
    ChipVariant("Apple M2 Ultra", (60, 76), 800),  # A C E
    ChipVariant("Apple M3", (8, 10), 100),  # A C
    ChipVariant("Apple M3 Pro", (14, 18), 150),  # A C
    ChipVariant("Apple M3 Max", (30,), 300),  # A C
    ChipVariant("Apple M3 Max", (40,), 400),  # A C
    ChipVariant("Apple M3 Ultra", (60, 80), 819),  # B; A says 800
    ChipVariant("Apple M4", (8, 10), 120),  # A B C
    ChipVariant("Apple M4 Pro", (16, 20), 273),  # A B C
    ChipVariant("Apple M4 Max", (32,), 410),  # A B
    ChipVariant("Apple M4 Max", (40,), 546),  # A B
    ChipVariant("Apple M5", (8, 10), 153),  # A F
    ChipVariant("Apple M5 Pro", (16, 20), 307),  # A B F
    ChipVariant("Apple M5 Max", (32,), 460),  # A B F
    ChipVariant("Apple M5 Max", (40,), 614),  # A B F
    ChipVariant("Apple M5 Ultra", (64, 80), 1200),  # B D G; 1067 to 1097 were measured
    ChipVariant("Apple M6", (12,), 153, (16,)),  # B D
    ChipVariant("Apple M6", (12,), 170, (24, 32)),  # B D
)


def table_bandwidth(chip: str, gpu_cores: int | None, memory_bytes: int | None) -> int | None:
    """Specified memory bandwidth in bytes per second; None if the table cannot tell.

    GPU cores or memory that are unknown do not matter where all lines of the chip say the same.
    """
    lines = [line for line in CHIP_TABLE if line.chip == chip]
    if gpu_cores is not None:
        lines = [line for line in lines if gpu_cores in line.gpu_cores]
    if memory_bytes is not None:
        lines = [line for line in lines if not line.memory_gib or round(memory_bytes / GIB) in line.memory_gib]
    bandwidths = {line.bandwidth_gb_per_second for line in lines}
    return bandwidths.pop() * GB if len(bandwidths) == 1 else None
