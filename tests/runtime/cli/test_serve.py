"""``pomona serve``, ``chat`` and ``bench``: what is wrong is one line, before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime.cli.bench_report import Round, StageTime, csv_lines, markdown_lines, measured, text_lines


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("serve", "demo", "--split", "1,2"), "The split 1,2 names 2 parts, but there are 3 nodes"),
        (("serve", "demo", "--port", "70000"), "'70000' is no port"),
        (("serve", "demo", "--nodes", "a", "--virtual-nodes", "2"), "not allowed with argument"),
        (("bench", "demo", "--prompt", "5,x"), "'5,x' are no counts"),
        (("chat", "demo", "--virtual-nodes", "99"), "nodes, not 99"),
    ],
)
def test_bad_words_end_with_one_line(words, reason):
    done = subprocess.run(
        [sys.executable, "-m", "pomona", *words], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_benchmark_is_honest_about_its_totals():
    rounds = [Round(4.0, (1.0, 2.0), (2.0, 2.0)), Round(2.0, (0.5, 1.0), (1.0, 1.0))]
    stages = [StageTime("Studio", 0, 4, seconds, 0.0, 0.0) for seconds in (0.010, 0.020)]
    row = measured(100, 11, 2, rounds, stages)
    assert row.total_tokens_per_second.least == 2 * 11 / 4
    assert row.total_tokens_per_second.most == 2 * 11 / 2
    assert row.prefill_tokens_per_second.least == 2 * 100 / 2.0
    assert row.decode_tokens_per_second.median == pytest.approx(7.5)
    assert row.ttft_seconds.median == 1.0
    assert row.split == "Studio 5"
    assert "15.0" in text_lines([row])[1]
    assert markdown_lines([row])[1].startswith("| --- |")
    names, numbers = (line.split(",") for line in csv_lines([row]))
    assert len(names) == len(numbers)
    assert dict(zip(names, numbers, strict=True))["total_tokens_per_second_least"] == "5.5000"
