"""The demo as a person runs it: a command, its output, its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(180)

DEMO = [sys.executable, "-m", "pomona", "demo", "--headless"]


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=150, check=False)


def test_the_capital_of_france_over_three_uneven_stages():
    done = demo("--json", "--split", "5,18,7", "--prompt", "What is the capital of France? Answer in one sentence.")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "Paris" in report["answer"]
    assert report["mode"] == "pipeline"
    assert report["finish_reason"] == "stop"
    assert len(report["tokens"]) > 3
    assert report["ttft_seconds"] > 0
    assert report["decode_tokens_per_second"] > 0
    stages = report["stages"]
    assert [stage["last_layer"] - stage["first_layer"] + 1 for stage in stages] == [5, 18, 7]
    for stage in stages:
        assert stage["held_bytes"] == pytest.approx(stage["planned_bytes"], rel=0.05)
        assert stage["predicted_seconds"] > 0
        assert stage["measured_seconds"] is None or stage["measured_seconds"] > 0  # workers say it a moment later


@pytest.mark.matrix
def test_without_a_prompt_and_a_terminal_it_asks_something_itself_and_prints_what_was_measured():
    done = subprocess.run(
        [*DEMO, "--nodes", "1", "--max-tokens", "5"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert "Apricot  layers 0-29  holds" in done.stdout
    assert "tok/s, 5 tokens" in done.stdout


@pytest.mark.matrix
def test_a_person_in_the_terminal_changes_the_split_while_the_model_runs():
    person, terminal = os.openpty()
    with subprocess.Popen(
        [*DEMO, "--split", "5,18,7", "--max-tokens", "4"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        os.close(terminal)
        os.write(person, b"Say hello.\n/split seven\n/split 1,2,3\n/split 7,16,7\nAgain.\n/rebalance\n\x04")
        out, log = running.communicate(timeout=150)
        os.close(person)
    assert running.returncode == 0, log
    assert out.count("tok/s, 4 tokens") == 2
    assert "Give layers for each node" in log
    assert "adds up to 6 layers" in log
    assert "5.1 MB were loaded; the rest was there" in log
    assert "Cherry: layers 7-22, " in log
    assert " for a token" in log


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--split", "5,18"], "5,18 names 2 parts, but there are 3 nodes"),
        (["--split", "5,18,9"], "adds up to 32 layers, but SmolLM2-135M-Instruct has 30"),
        (["--split", "5,-1,26"], "negative"),
        (["--split", "five"], "'five' is no split"),
        (["--nodes", "0"], "1 to 8 nodes, not 0"),
        (["--nodes", "2", "--mode", "tensor"], "9 attention heads, which 2 nodes cannot share equally"),
        (["--mode", "tensor", "--split", "10,10,10"], "takes no split"),
        (["--max-tokens", "0"], "'0' is not a whole number of at least 1"),
        (["--temperature", "hot"], "'hot' is not a temperature"),
        (["--surprise"], "--surprise"),
    ],
)
def test_bad_input_is_one_plain_line_and_exit_status_2(arguments, words):
    done = demo(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


@contextmanager
def running_demo(log: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A demo that answers at length, and every process that it started."""
    command = [*DEMO, "--nodes", "2", "--prompt", "Write a very long story.", "--max-tokens", "4000"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.read(1)  # the answer has begun
            yield process, psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()


@pytest.mark.parametrize(
    "how",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.matrix), signal.SIGKILL],
    ids=lambda how: how.name,
)
def test_however_it_ends_nothing_is_left(tmp_path, how):
    with running_demo(tmp_path / "log") as (process, started):
        assert len(started) == 5  # two agents, a controller, two workers
        process.send_signal(how)
        _gone, alive = psutil.wait_procs([psutil.Process(process.pid), *started], timeout=20)
        process.wait(20)
    assert not alive
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.matrix
def test_agents_that_are_not_ours_do_not_disturb(shared_agents):
    done = demo("--nodes", "1", "--prompt", "Say hello.", "--max-tokens", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert [stage["node"] for stage in json.loads(done.stdout)["stages"]] == ["Apricot"]
