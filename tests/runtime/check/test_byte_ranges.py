"""Which bytes of a sharded checkpoint each worker process reads: its own tensors, each once, and no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from runtime.check.comparison import check_plan
from runtime.cluster.local_ranks import LocalRanks
from runtime.models.safetensors_header import read_header
from tests.runtime.check.plans import planned
from tests.runtime.engine.sharded import is_of, save_sharded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from runtime.models.safetensors_header import TensorInfo

SPLIT = (3, 2, 2)
RECORDER = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

static void note(int fd, long long begin, ssize_t count) {
  char link[64], path[4096], log[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (count <= 0 || length <= 0) return;
  path[length] = 0;
  if (!strstr(path, ".safetensors")) return;
  snprintf(log, sizeof log, "%s/%d", getenv("POMONA_TEST_READS"), getpid());
  int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
  dprintf(out, "%s %lld %lld\n", strrchr(path, '/') + 1, begin, begin + count);
  close(out);
}

extern "C" ssize_t pread(int fd, void* data, size_t size, off_t begin) {
  static auto real = (ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  ssize_t count = real(fd, data, size, begin);
  note(fd, begin, count);
  return count;
}

extern "C" ssize_t read(int fd, void* data, size_t size) {
  static auto real = (ssize_t (*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  off_t begin = lseek(fd, 0, SEEK_CUR);
  ssize_t count = real(fd, data, size);
  note(fd, begin, count);
  return count;
}
"""
"""Stands before the C library's ``read`` and ``pread``, and writes down which bytes of model files they read."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="macOS protects its C library from being stood before"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler here"),
]


@pytest.fixture
def reads(tmp_path: Path, monkeypatch) -> Path:
    """A folder with one file for each process that starts from now on: a line for each range that it reads."""
    source, library, logs = tmp_path / "recorder.cpp", tmp_path / "recorder.so", tmp_path / "reads"
    source.write_text(RECORDER)
    # The compiler that MLX itself calls on a CPU.
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    logs.mkdir()
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("POMONA_TEST_READS", str(logs))
    return logs


async def test_each_rank_reads_its_own_tensors_once_and_no_other(reads, tmp_path, monkeypatch):
    folder = save_sharded(tmp_path / "sharded")
    plan = planned(folder, SPLIT)
    async with LocalRanks(plan, folder) as ranks:
        pids = ranks.pids
    tensors = [(file.name, name, info) for file in folder.glob("*.safetensors") for name, info in headers(file)]
    for pid, stage in zip(pids, plan.stages, strict=True):
        assert bytes_read(reads / str(pid), tensors) == {
            name: info.byte_count
            for _file, name, info in tensors
            if is_of(name, stage.first_layer, stage.last_layer + 1, plan.layer_count)
        }
    monkeypatch.undo()
    result = await check_plan(folder, plan)
    assert result.identical, result
    assert result.max_abs_difference == 0


def headers(file: Path) -> Iterable[tuple[str, TensorInfo]]:
    return read_header(file).items()


def bytes_read(log: Path, tensors: Sequence[tuple[str, str, TensorInfo]]) -> dict[str, int]:
    """How many bytes of each tensor a process read, counted again when it read them again."""
    read: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        file_name, begin, end = line.split(" ")
        for file, name, info in tensors:
            if file == file_name:
                read[name] += max(min(int(end), info.end) - max(int(begin), info.begin), 0)
    return {name: count for name, count in read.items() if count}
