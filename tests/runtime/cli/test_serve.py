"""``pomona serve``, ``chat`` and ``bench``: what is wrong is one line, before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
