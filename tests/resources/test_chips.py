"""The chip table: what it tells and where it keeps silent."""

from __future__ import annotations

import pytest

from resources.chips import CHIP_TABLE, GB, GIB, table_bandwidth


@pytest.mark.parametrize(
    ("chip", "gpu_cores", "memory_gib", "gb_per_second"),
    [
        ("Apple M1", 8, 16, 68),
        ("Apple M2 Ultra", 76, 192, 800),
        ("Apple M3 Max", 30, 96, 300),
        ("Apple M3 Max", 40, 128, 400),
        ("Apple M3 Ultra", 80, 512, 819),
        ("Apple M4 Max", 32, 36, 410),
        ("Apple M4 Max", 40, 128, 546),
        ("Apple M5 Max", 32, 36, 460),
        ("Apple M5 Max", 40, 128, 614),
        ("Apple M5 Ultra", 80, 512, 1200),
        ("Apple M6", 12, 16, 153),
        ("Apple M6", 12, 32, 170),
        ("Apple M4 Pro", None, None, 273),
        ("Apple M4", 10, 12345, 120),
    ],
)
def test_bandwidth_of_chips_that_were_sold(chip, gpu_cores, memory_gib, gb_per_second):
    memory_bytes = memory_gib * GIB if memory_gib else None
    assert table_bandwidth(chip, gpu_cores, memory_bytes) == gb_per_second * GB


@pytest.mark.parametrize(
    ("chip", "gpu_cores", "memory_gib"),
    [
        ("Apple M4 Ultra", 80, 256),
        ("Apple M4 Max", None, 64),
        ("Apple M4 Max", 38, 64),
        ("Apple M6", 12, 48),
        ("Apple M6", 12, None),
        ("Intel Core i7-9750H", 8, 16),
        ("apple m1", 8, 16),
        ("", None, None),
    ],
)
def test_what_the_table_cannot_tell_has_to_be_measured(chip, gpu_cores, memory_gib):
    assert table_bandwidth(chip, gpu_cores, memory_gib * GIB if memory_gib else None) is None


def test_no_two_lines_contradict_each_other():
    seen = set()
    for line in CHIP_TABLE:
        for cores in line.gpu_cores:
            for memory in line.memory_gib or (0,):
                assert (line.chip, cores, memory) not in seen
                seen.add((line.chip, cores, memory))
