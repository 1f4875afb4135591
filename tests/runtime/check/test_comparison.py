"""A check that could not fail would prove nothing."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from runtime.check import comparison, records
from runtime.check import runs as runs_of_check
from runtime.check.comparison import check_plan
from runtime.check.result import CheckResult
from runtime.check.runs import Run
from runtime.check.versions import versions
from runtime.errors import PomonaError
from runtime.models.safetensors_header import read_header
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import saved
from tests.runtime.check.plans import planned
from tests.runtime.models.files import write_model

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.planning.plan import Plan

LOGITS = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
FOLDER_CONFIG = {"num_hidden_layers": 2}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return saved(CONFIGS["llama"]["tied"], tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def runs(monkeypatch):
    """Answers in the place of the two runs: ``runs(split, whole)``."""

    def answer(split: Run, whole: Run) -> None:
        async def run_split(*_: object) -> Run:
            return split

        async def run_whole(*_: object, rounded: bool) -> Run:
            return whole

        monkeypatch.setattr(comparison, "run_split", run_split)
        monkeypatch.setattr(comparison, "run_whole", run_whole)

    return answer


def moved(place: tuple[int, int], value: float) -> np.ndarray:
    logits = LOGITS.copy()
    logits[place] = value
    return logits


async def test_the_same_bits_and_tokens_are_identical(tiny, runs):
    infinite = moved((0, 2), -np.inf)
    runs(Run((1, 2), infinite), Run((1, 2), infinite.copy()))
    result = await check_plan(tiny, planned(tiny, (3, 4)))
    assert result.identical
    assert result.max_abs_difference == 0


@pytest.mark.parametrize(
    ("whole", "difference"),
    [
        (Run((1, 2), np.nextafter(LOGITS, np.float32(2))), pytest.approx(0, abs=1e-6)),
        (Run((1, 2), moved((1, 3), 1.5)), 0.5),
        (Run((1, 3), LOGITS), 0),
        (Run((1, 2), moved((0, 0), np.nan)), None),
        (Run((1, 2), moved((0, 0), -np.inf)), float("inf")),
        (Run((1, 2), LOGITS[:1]), None),
    ],
    ids=["last bit", "one logit", "a token", "NaN", "an infinity", "too few"],
)
async def test_anything_else_is_different(tiny, runs, whole, difference):
    runs(Run((1, 2), LOGITS), whole)
    result = await check_plan(tiny, planned(tiny, (3, 4)))
    assert not result.identical
    assert result.max_abs_difference == difference


async def test_nan_on_both_sides_proves_nothing(tiny, runs):
    both = moved((0, 0), np.nan)
    runs(Run((1, 2), both), Run((1, 2), both.copy()))
    assert not (await check_plan(tiny, planned(tiny, (3, 4)))).identical


@pytest.mark.parametrize(("apart", "identical"), [(0.009, True), (0.02, False)])
async def test_a_tensor_group_may_differ_as_much_as_rounding_explains(tiny, runs, apart, identical):
    plan = planned(tiny, None, 2, "tensor")
    runs(Run((1, 2), moved((0, 0), -1 + apart)), Run((1, 2), LOGITS, (), moved((1, 1), LOGITS[1, 1] + 0.00125)))
    result = await check_plan(tiny, plan)
    assert result.identical is identical
    assert result.split == (7, 7)


def test_results_are_kept_for_each_split_and_only_for_these_versions(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_model(tmp_path / "Tiny", {"model.layers.0.weight": (2, 2)}, **FOLDER_CONFIG)
    first = CheckResult("Tiny", (3, 4), "pipeline", versions(), identical=True, max_abs_difference=0.0)
    assert records.verified(folder, "pipeline", (3, 4)) is None
    records.keep(folder, first)
    records.keep(folder, msgspec.structs.replace(first, split=(1, 6), identical=False))
    assert records.verified(folder, "pipeline", (3, 4)) == first
    assert records.verified(folder, "tensor", (3, 4)) is None
    worse = msgspec.structs.replace(first, identical=False)
    records.keep(folder, worse)
    assert records.verified(folder, "pipeline", (3, 4)) == worse
    older = msgspec.structs.replace(first, versions={"mlx": "0.1"})
    records.keep(folder, older)
    assert records.verified(folder, "pipeline", (3, 4)) == worse
    monkeypatch.setattr(records, "versions", lambda: {"mlx": "0.1"})
    assert records.verified(folder, "pipeline", (3, 4)) == older
    assert records.verified(folder, "pipeline", (1, 6)) is None
    assert records.known(folder) == {("pipeline", (3, 4)): older}


def test_another_model_under_the_same_name_has_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_model(tmp_path / "Tiny", {"model.layers.0.weight": (2, 2)}, **FOLDER_CONFIG)
    records.keep(folder, CheckResult("Tiny", (2,), "pipeline", versions(), identical=True))
    (folder / "config.json").write_text(json.dumps({**FOLDER_CONFIG, "rope_theta": 5}))
    assert records.verified(folder, "pipeline", (2,)) is None


def test_a_damaged_record_counts_as_none(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_model(tmp_path / "Tiny", {"model.layers.0.weight": (2, 2)}, **FOLDER_CONFIG)
    result = CheckResult("Tiny", (2,), "pipeline", versions(), identical=True)
    records.keep(folder, result)
    (kept,) = (tmp_path / "cache" / "pomona" / "checks").iterdir()
    kept.write_text("[{")
    assert records.verified(folder, "pipeline", (2,)) is None
    records.keep(folder, result)
    assert records.verified(folder, "pipeline", (2,)) == result


async def test_one_weight_that_is_another_on_the_stages_is_found(tmp_path, monkeypatch):
    right = saved(CONFIGS["llama"]["tied"], tmp_path / "right")
    wrong = tmp_path / "wrong"
    shutil.copytree(right, wrong)
    layer = next(name for name in read_header(right / "model.safetensors") if ".layers.5." in name)
    place = read_header(right / "model.safetensors")[layer].begin
    data = bytearray((wrong / "model.safetensors").read_bytes())
    data[place] ^= 1  # the last bit of a float32
    (wrong / "model.safetensors").write_bytes(data)

    async def run_split(plan: Plan, _folder: Path, *rest: Any) -> Run:
        return await runs_of_check.run_split(plan, wrong, *rest)

    monkeypatch.setattr(comparison, "run_split", run_split)
    result = await check_plan(right, planned(right, (3, 4)))
    assert not result.identical
    assert result.max_abs_difference is not None
    assert 0 < result.max_abs_difference < 1e-3


async def test_a_model_that_mlx_lm_alone_cannot_run_is_an_error_with_its_reason(tiny, tmp_path, monkeypatch):
    async def run_split(*_: object) -> Run:
        return Run((1, 2), LOGITS, ((1, 2, 3),))

    monkeypatch.setattr(comparison, "run_split", run_split)
    plan = planned(tiny, (3, 4))
    with pytest.raises(PomonaError, match="mlx-lm alone does not run the whole model here"):
        await check_plan(tmp_path, plan)
