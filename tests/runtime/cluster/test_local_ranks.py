"""Ranks without agents: token ids in, token ids out, and errors that say which rank."""

from __future__ import annotations

import psutil
import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import Done, Generated, Sampling, Submit
from runtime.errors import PomonaError
from runtime.models.layout import read_layout
from runtime.planning.plan import Plan, PlanNode, make_plan


def plan(folder, split):
    nodes = [PlanNode(str(index), f"rank {index}", 1 << 40) for index in range(len(split))]
    made = make_plan(read_layout(folder), nodes, split)
    assert isinstance(made, Plan)
    return made


async def test_two_ranks_answer_and_end(demo_model):
    async with LocalRanks(plan(demo_model, (20, 10)), demo_model) as ranks:
        pids = ranks.pids
        await ranks.send(Submit(1, (504, 3575, 282), 3, (), Sampling()))
        frames = [await ranks.next_frame()]
        while not isinstance(frames[-1], Done):
            frames.append(await ranks.next_frame())
        assert sum(isinstance(frame, Generated) for frame in frames) == 3
        assert frames[-1] == Done(1, "length")
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_a_killed_rank_is_an_error_that_names_it(demo_model):
    async with LocalRanks(plan(demo_model, (20, 10)), demo_model) as ranks:
        psutil.Process(ranks.pids[1]).kill()
        with pytest.raises(PomonaError, match="rank"):
            await ranks.next_frame()


async def test_a_folder_without_weights_is_refused_in_words(demo_model, tmp_path):
    (tmp_path / "config.json").write_bytes((demo_model / "config.json").read_bytes())
    with pytest.raises(PomonaError, match="has no weights"):
        async with LocalRanks(plan(demo_model, (20, 10)), tmp_path):
            pass
