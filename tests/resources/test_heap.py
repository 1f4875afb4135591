"""Freed memory goes back to the system."""

import sys

import psutil
import pytest

from resources.heap import trim_heap

MB = 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc's is asked")
def test_what_was_freed_below_something_that_stays_is_given_back():
    blocks = [bytearray(4000) for _ in range(25_000)]  # 100 MB, each too small for a mapping of its own
    stays = blocks[-1]
    process = psutil.Process()
    full = process.memory_info().rss
    del blocks
    freed = process.memory_info().rss
    trim_heap()
    assert full - process.memory_info().rss > 80 * MB
    assert full - freed < 80 * MB, "then it would be given back without being asked"
    assert len(stays) == 4000
