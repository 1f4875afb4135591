"""While a rank loads, its process needs no more than its own tensors and little on top."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.models.layout import read_layout
from tests.matrix.configs import CONFIGS
from tests.matrix.shared import shareable
from tests.matrix.staged import saved
from tests.matrix.variant import text
from tests.runtime.check.plans import planned

if TYPE_CHECKING:
    from runtime.planning.plan import Plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps a process's peak in /proc on Linux")

TINY = text("llama", hidden_size=768, intermediate_size=2048, num_attention_heads=6, head_dim=128, vocab_size=4096)
"""Seven layers, but large enough to stand out from what a process needs for itself."""
NOISE_BYTES = 8 << 20


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return saved(TINY, tmp_path_factory.mktemp("models") / "tiny")


async def test_the_peak_of_a_stage_is_its_own_tensors_and_a_layer(demo_model, tiny, tmp_path):
    idle_bytes = await idle_peak(tmp_path, (3, 4))
    await assert_peaks(planned(demo_model, (17, 6, 7)), demo_model, idle_bytes)
    await assert_peaks(planned(tiny, (1, 4, 2)), tiny, idle_bytes)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.matrix
async def test_the_peak_of_a_rank_in_a_tensor_group_is_too(demo_model, tiny, tmp_path, ranks):
    idle_bytes = await idle_peak(tmp_path, None, ranks)
    folder = demo_model if ranks == 3 else tiny
    await assert_peaks(planned(folder, None, ranks, "tensor"), folder, idle_bytes)


async def assert_peaks(plan: Plan, folder: Path, idle_bytes: int) -> None:
    layer_bytes = max(read_layout(folder).layer_bytes)
    own = [rank.weight_bytes for rank in plan.ranks]
    for own_bytes, peak_bytes in zip(own, await peaks(plan, folder), strict=True):
        assert own_bytes < peak_bytes - idle_bytes + NOISE_BYTES, "nothing is loaded that could be measured"
        assert peak_bytes - idle_bytes <= 1.1 * own_bytes + layer_bytes


async def idle_peak(folder: Path, split: tuple[int, ...] | None, ranks: int = 0) -> int:
    """The most that a worker needs for itself: it is warm, joined to its ring if it has one, and holds next to nothing.

    An import, a first step and MLX's ring take memory once, however large the model is.
    """
    config = CONFIGS["llama"]["tied"]
    saved(shareable(config, ranks) if ranks else config, folder / "idle")
    plan = planned(folder / "idle", split, ranks, "tensor" if ranks else "pipeline")
    return max(await peaks(plan, folder / "idle"))


async def peaks(plan: Plan, folder: Path) -> list[int]:
    """The peak of each worker process, when it has loaded and warmed up."""
    async with LocalRanks(plan, folder) as ranks:
        return [peak(pid) for pid in ranks.pids]


def peak(pid: int) -> int:
    """The most memory that a process ever had at once."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    kilobytes, _unit = status["VmHWM"].split()
    return int(kilobytes) << 10
