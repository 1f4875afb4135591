"""Whether memory came back: what a machine says is unused, one answer after the other."""

from __future__ import annotations

import psutil
import pytest

from resources.memory_return import MemoryReturn
from resources.memory_watch import unused_bytes, watch_return
from runtime.cluster.messages import MemoryBack

GIB = 1 << 30


def machine(*answers):
    """Its unused memory, answer by answer; the last one stays."""
    left = list(answers)

    async def unused():
        return left.pop(0) if len(left) > 1 else left[0]

    return unused


async def test_what_comes_back_a_moment_later_is_waited_for():
    came = await watch_return(12 * GIB, 4 * GIB, machine(4 * GIB, 9 * GIB, 16 * GIB))
    assert (came.returned_bytes, came.missing_bytes) == (12 * GIB, 0)


async def test_what_does_not_come_back_is_told_with_its_amount():
    came = await watch_return(12 * GIB, 4 * GIB, machine(8 * GIB), limit_seconds=0)
    assert (came.returned_bytes, came.missing_bytes) == (4 * GIB, 8 * GIB)
    assert "8.0 of 12.0 GB did not come back on Studio" in str(MemoryBack("f" * 64, "Studio", came))


@pytest.mark.parametrize(("held", "returned"), [(12 * GIB, 10 * GIB), (GIB // 2, 0), (0, 0)])
async def test_other_programs_may_take_a_little_meanwhile(held, returned):
    came = await watch_return(held, GIB, machine(GIB + returned), limit_seconds=0)
    assert came.missing_bytes == 0


async def test_never_more_than_was_held_and_never_less_than_nothing():
    assert (await watch_return(GIB, GIB, machine(9 * GIB))).returned_bytes == GIB
    assert (await watch_return(GIB, 4 * GIB, machine(GIB), limit_seconds=0)).returned_bytes == 0
    assert str(MemoryBack("f" * 64, "Studio", MemoryReturn(GIB, GIB))) == "1.0 GB came back on Studio."


async def test_what_is_unused_here_is_what_the_kernel_says():
    assert abs(await unused_bytes() - psutil.virtual_memory().available) < psutil.virtual_memory().total / 4
