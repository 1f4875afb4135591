"""The logs of jobs: the newest are kept and shown, by their ends."""

from __future__ import annotations

import os

from runtime.agent.job_logs import KEPT_FILES, TAIL_BYTES, drop_old_logs, log_path, read_logs


def write(folder, job, rank, text, age):
    path = log_path(folder, job, rank)
    path.write_text(text)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))


def test_the_newest_job_is_shown_with_the_end_of_each_rank(tmp_path):
    write(tmp_path, "a" * 32, 0, "old", 100)
    write(tmp_path, "b" * 32, 0, "first" + "x" * TAIL_BYTES, 2)
    write(tmp_path, "b" * 32, 1, "second", 1)
    logs = read_logs(tmp_path)
    assert [rank.name for rank in logs.ranks] == [f"{'b' * 16}-rank1", f"{'b' * 16}-rank0"]
    assert logs.ranks[0].text == "second"
    assert logs.ranks[1].text == "x" * TAIL_BYTES


def test_another_job_is_shown_when_it_is_asked_for(tmp_path):
    write(tmp_path, "a" * 32, 0, "old", 100)
    write(tmp_path, "b" * 32, 0, "new", 2)
    logs = read_logs(tmp_path, "a" * 32)
    assert [rank.text for rank in logs.ranks] == ["old"]
    assert [(seen.job, seen.written_seconds) for seen in logs.jobs] == [("b" * 16, 999_998), ("a" * 16, 999_900)]
    assert read_logs(tmp_path, "../" * 5).ranks == ()


def test_where_no_job_ran_there_is_none(tmp_path):
    assert read_logs(tmp_path / "logs").ranks == ()
    drop_old_logs(tmp_path / "logs")


def test_old_ones_go(tmp_path):
    for age in range(KEPT_FILES + 5):
        write(tmp_path, f"{age:016}", 0, "", age)
    drop_old_logs(tmp_path)
    assert len(list(tmp_path.iterdir())) == KEPT_FILES
    assert log_path(tmp_path, f"{0:016}", 0).exists()
