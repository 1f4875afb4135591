"""Where a node's memory is and what a model may take of it: arithmetic, and one process measured for real."""

from __future__ import annotations

import mmap
import os
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.footprint import footprint_bytes, footprint_from_rusage, footprint_from_status
from resources.memory_cap import CAP_NAME, MemoryCap
from resources.memory_parts import NO_WORKERS, WorkersMemory, default_cap, for_a_model, memory_parts, total
from resources.node import MemoryParts

GIB = 1 << 30
MIB = 1 << 20
amounts = st.integers(0, 1 << 45)
STATUS = """Name:\tpython\nVmRSS:\t  900000 kB\nRssAnon:\t  300000 kB\nRssFile:\t  500000 kB\nRssShmem:\t  100000 kB
VmSwap:\t    5000 kB\nThreads:\t9\n"""


@given(amounts, amounts, st.builds(WorkersMemory, amounts, amounts, amounts))
def test_the_parts_always_add_up_and_none_is_negative(whole, unused, workers):
    parts = memory_parts(whole, unused, workers)
    values = (parts.others_bytes, parts.weight_bytes, parts.kv_bytes, parts.overhead_bytes, parts.free_bytes)
    assert sum(values) == whole
    assert min(values) >= 0


def test_our_workers_are_not_others():
    workers = WorkersMemory(12 * GIB, 10 * GIB, GIB)
    assert memory_parts(64 * GIB, 40 * GIB, workers) == MemoryParts(12 * GIB, 10 * GIB, GIB, GIB, 40 * GIB)


def test_a_virtual_node_s_workers_take_from_its_budget_though_the_machine_has_more():
    assert memory_parts(4 * GIB, 60 * GIB, WorkersMemory(GIB, GIB, 0)) == MemoryParts(0, GIB, 0, 0, 3 * GIB)
    assert memory_parts(4 * GIB, GIB, NO_WORKERS) == MemoryParts(3 * GIB, 0, 0, 0, GIB)


def test_workers_of_several_jobs_are_added():
    assert total([WorkersMemory(3, 2, 1), WorkersMemory(30, 20, 10)]) == WorkersMemory(33, 22, 11)
    assert total([]) == NO_WORKERS


def test_what_a_model_may_take_is_bounded_by_all_three():
    parts = memory_parts(64 * GIB, 50 * GIB, WorkersMemory(10 * GIB, 10 * GIB))
    assert for_a_model(parts, None, None) == 50 * GIB
    assert for_a_model(parts, 40 * GIB, None) == 30 * GIB  # Metal's limit, less what our workers have of it
    assert for_a_model(parts, 40 * GIB, 24 * GIB) == 14 * GIB
    assert for_a_model(parts, 40 * GIB, GIB) == 0


@given(amounts)
def test_the_mac_that_a_person_sits_at_keeps_more_for_itself(whole):
    alone, shared = default_cap(whole, someone_sits_here=False), default_cap(whole, someone_sits_here=True)
    assert 0 <= shared <= alone <= whole


@pytest.mark.parametrize(("gib", "alone", "sat_at"), [(16, 14.4, 10.7), (64, 57.6, 42.7), (192, 184, 160)])
def test_the_usual_caps(gib, alone, sat_at):
    caps = default_cap(gib * GIB, someone_sits_here=False), default_cap(gib * GIB, someone_sits_here=True)
    assert tuple(round(cap / GIB, 1) for cap in caps) == (alone, sat_at)


def test_a_chosen_cap_is_kept_and_can_be_taken_back(tmp_path):
    MemoryCap(tmp_path / "node").choose(24 * GIB)
    cap = MemoryCap(tmp_path / "node")
    assert cap.chosen_bytes == 24 * GIB
    cap.choose(None)
    assert MemoryCap(tmp_path / "node").chosen_bytes is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"cap_bytes": -1}', b"x" * 5000])
def test_a_file_that_is_none_of_ours_counts_as_nothing(tmp_path, content):
    (tmp_path / CAP_NAME).write_bytes(content)
    assert MemoryCap(tmp_path).chosen_bytes is None


def test_the_footprint_is_what_a_process_would_give_back():
    assert footprint_from_status(STATUS) == 405_000 << 10  # not the file that is only mapped
    assert footprint_from_status("Name:\tkthreadd\n") is None
    rusage = bytes(16) + struct.pack("<10Q", 1, 2, 3, 4, 5, 6, 7 * GIB, 8 * GIB, 9, 10)
    assert footprint_from_rusage(rusage) == 8 * GIB
    assert footprint_from_rusage(rusage[:79]) is None


@given(st.binary(max_size=200))
def test_any_bytes_from_the_kernel_are_no_exception(output):
    footprint_from_rusage(output)
    footprint_from_status(output.decode(errors="replace"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_that_is_mapped_is_no_footprint_and_memory_is(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(os.urandom(MIB) * 64)
    before = footprint_bytes(os.getpid())
    assert before is not None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[::4096]) > 0
        now = footprint_bytes(os.getpid())
        assert now is not None
        assert now - before < 32 * MIB
    own = bytearray(os.urandom(MIB) * 64)
    now = footprint_bytes(os.getpid())
    assert now is not None
    assert now - before > 60 * MIB
    assert own
    assert footprint_bytes(1 << 30) is None
    assert Path(f"/proc/{os.getpid()}/status").exists()
