"""``pomona check`` as a person or a script calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.check.result import CheckResult, versions
from runtime.cli import check
from runtime.cli.check import CheckOptions, run_check
from tests.matrix.configs import CONFIGS

POMONA = Path(sys.executable).parent / "pomona"
KEYS = {"model", "identical", "max_abs_difference", "prefill_tokens", "decode_tokens", "split", "mode", "versions"}


def bare(tmp_path: Path, config: dict[str, Any]) -> Path:
    path = tmp_path / "Tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(config))
    return path


def run(*arguments: object) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [POMONA, "check", *map(str, arguments), "--json"], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_bare_configuration_is_checked_with_random_weights(tmp_path):
    status, result = run(bare(tmp_path, CONFIGS["qwen3_next"]["full every fourth"]), "--split", "4,3")
    assert status == 0
    assert result.keys() == KEYS
    assert (result["model"], result["split"], result["mode"]) == ("Tiny", [4, 3], "pipeline")
    assert result["identical"] is True
    assert result["max_abs_difference"] == 0
    assert result["versions"] == versions()


def test_in_tensor_mode_equal_tokens_and_near_logits_are_enough(tmp_path):
    status, result = run(bare(tmp_path, CONFIGS["llama"]["untied"]), "--ranks", "2", "--mode", "tensor")
    assert status == 0
    assert (result["split"], result["mode"]) == ([7, 7], "tensor")
    assert 0 < result["max_abs_difference"] < 1e-3


@pytest.mark.parametrize(
    ("config", "arguments", "reason"),
    [
        (CONFIGS["llama"]["tied"], ["--split", "3,3"], "The split 3,3 adds up to 6 layers, but Tiny has 7"),
        (CONFIGS["iquestloopcoder"]["default"], [], "Tiny sends every token through its layers 2 times"),
        (CONFIGS["mamba2"]["tied"], ["--mode", "tensor"], "Tiny has Mamba layers"),
        ({"model_type": "gpt5"}, [], "Tiny is of the type gpt5, which mlx-lm does not know"),
        ({"model_type": "llama"}, [], "mlx-lm makes no model of config.json (TypeError"),
        (
            {**CONFIGS["llama"]["tied"], "intermediate_size": 10**9},
            [],
            "config.json makes no model: random weights would",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(config, arguments, reason, tmp_path):
    status, result = run(bare(tmp_path, config), *arguments)
    assert status == 2
    assert result.keys() == KEYS | {"refusal"}
    assert result["refusal"].startswith(reason)
    assert (result["identical"], result["max_abs_difference"]) == (False, None)


def test_a_model_that_is_not_there_is_one_line(tmp_path):
    done = subprocess.run(
        [POMONA, "check", tmp_path / "nothing"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "is no model folder" in done.stderr


@pytest.mark.parametrize(
    ("difference", "identical", "status", "words"),
    [
        (0.0, True, 0, "is the whole model: bit for bit"),
        (0.25, False, 1, "is NOT the whole model: logits differ by 0.25"),
    ],
)
def test_a_real_model_is_told_and_remembered(difference, identical, status, words, demo_model, monkeypatch, capsys):
    kept = []

    async def check_plan(folder: Path, plan: Any) -> CheckResult:
        return CheckResult(plan.model, (20, 10), plan.mode, versions(), identical, difference, 96, 16)

    monkeypatch.setattr(check, "check_plan", check_plan)
    monkeypatch.setattr(check, "keep", lambda folder, result: kept.append((folder, result.identical)))
    assert run_check(CheckOptions("demo", 2, (20, 10), "pipeline", as_json=False)) == status
    assert words in capsys.readouterr().out
    assert kept == [(demo_model, identical)]


def test_the_command_itself_never_imports_mlx():
    code = "import sys, runtime.cli.check; print([name for name in sys.modules if name.startswith('mlx')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
