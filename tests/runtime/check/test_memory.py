"""While a rank loads, its process needs no more than its own tensors and little on top."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.models.layout import read_layout
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import saved
from tests.runtime.check.plans import planned

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps a process's peak in /proc on Linux")


async def test_the_peak_of_a_rank_is_its_own_tensors_and_a_layer(demo_model, tmp_path):
    tiny = saved(CONFIGS["llama"]["tied"], tmp_path / "tiny")
    idle_bytes = max(await peaks(tiny, (3, 4)))
    layer_bytes = max(read_layout(demo_model).layer_bytes)
    split = (17, 6, 7)
    stages = planned(demo_model, split).stages
    for stage, peak_bytes in zip(stages, await peaks(demo_model, split), strict=True):
        own_bytes = stage.ranks[0].weight_bytes
        assert own_bytes < peak_bytes - idle_bytes + (8 << 20), "nothing is loaded that could be measured"
        assert peak_bytes - idle_bytes <= 1.1 * own_bytes + layer_bytes


async def peaks(folder: Path, split: tuple[int, ...]) -> list[int]:
    """The peak of each worker process, when it has loaded and warmed up."""
    async with LocalRanks(planned(folder, split), folder) as ranks:
        return [peak(pid) for pid in ranks.pids]


def peak(pid: int) -> int:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    kilobytes, _unit = status["VmHWM"].split()
    return int(kilobytes) << 10
