"""``pomona check`` as a person or a script calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.check.records import verified
from runtime.check.versions import versions
from runtime.models.safetensors_header import read_header
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import saved
from tests.running import runs
from tests.runtime.models.files import file_bytes, header

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


def told(*arguments: object) -> tuple[int, str]:
    done = subprocess.run(
        [POMONA, "check", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=800
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.matrix
@pytest.mark.timeout(900)
def test_real_weights_are_checked_and_the_result_is_kept(demo_model, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    status, words = told(demo_model, "--split", "20,10")
    assert status == 0
    assert words == (
        "SmolLM2-135M-Instruct in pipeline mode over 20,10 is the whole model: "
        "bit for bit, 96 prompt tokens and 16 more.\n"
    )
    kept = verified(demo_model, "pipeline", (20, 10))
    assert kept is not None
    assert kept.identical
    assert verified(demo_model, "pipeline", (10, 20)) is None


@pytest.mark.matrix
def test_a_model_whose_answer_is_no_number_is_not_identical(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = saved(CONFIGS["llama"]["untied"], tmp_path / "Broken")
    file = folder / "model.safetensors"
    norm = read_header(file)["model.norm.weight"]
    data = bytearray(file.read_bytes())
    data[norm.begin : norm.begin + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)
    status, result = run(folder, "--split", "3,4")
    assert status == 1
    assert (result["identical"], result["max_abs_difference"]) == (False, None)
    kept = verified(folder, "pipeline", (3, 4))
    assert kept is not None
    assert not kept.identical
    status, words = told(folder, "--split", "3,4")
    assert status == 1
    assert "over 3,4 is NOT the whole model: logits differ by NaN" in words


def test_a_model_larger_than_this_machine_is_refused_before_it_is_tried(tmp_path):
    layers = 7
    shapes = {"model.embed_tokens.weight": (1 << 20, 1 << 22), "model.norm.weight": (8, 1)}
    shapes |= {f"model.layers.{layer}.self_attn.q_proj.weight": (8, 8) for layer in range(layers)}
    folder = tmp_path / "Huge"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["llama"]["tied"]))
    (folder / "model.safetensors").write_bytes(file_bytes(header(shapes), 0))
    data_bytes = 2 * sum(rows * columns for rows, columns in shapes.values())
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + data_bytes)  # all of it a hole
    status, result = run(folder, "--split", "3,4")
    assert status == 2
    assert result["refusal"].startswith("Huge takes 8192 GB and this machine has ")


def test_ctrl_c_ends_all_of_it(tmp_path):
    path = bare(tmp_path, CONFIGS["llama"]["tied"])
    with subprocess.Popen([POMONA, "check", path, "--split", "3,4"], stdout=subprocess.PIPE) as check:
        ranks: list[psutil.Process] = []
        while len(ranks) < 2:
            assert check.poll() is None
            ranks = [child for child in psutil.Process(check.pid).children(recursive=True) if runs(child, "worker")]
        check.send_signal(signal.SIGINT)
        assert check.wait(30) == 130
    _gone, alive = psutil.wait_procs(ranks, timeout=10)
    assert not alive


def test_the_command_itself_never_imports_mlx():
    code = "import sys, runtime.cli.check; print([name for name in sys.modules if name.startswith('mlx')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
