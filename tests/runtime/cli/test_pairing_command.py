"""``pomona agent code``, ``pair`` and ``unpair`` between two real agents on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from discovery.address import AddressBook, parse_address
from discovery.trust import TrustStore
from runtime.agent.folder import HOME_VARIABLE
from runtime.agent.messages import AgentStarted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(180)


def pomona(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pomona", *words],
        env={**os.environ, HOME_VARIABLE: str(home)}, capture_output=True, text=True, check=False, input="",
    )  # fmt: skip


@contextmanager
def agent(home: Path) -> Iterator[AgentStarted]:
    """An agent that listens on the loopback, and ends with its standard input."""
    words = ["agent", "--port", "0", "--name", home.name, "--listen", "loopback", "--owned"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pomona", *words],
        env={**os.environ, HOME_VARIABLE: str(home)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        yield msgspec.json.decode(process.stdout.readline(), type=AgentStarted)
        assert process.stdin is not None
        process.stdin.close()


def test_two_agents_are_paired_by_address_and_part_by_name(tmp_path):
    alpha, beta = tmp_path / "alpha", tmp_path / "beta"
    with agent(alpha), agent(beta) as started:
        place = f"127.0.0.1:{started.port}"
        shown = pomona(beta, "agent", "code")
        assert (shown.returncode, len(shown.stdout.strip())) == (0, 6)
        done = pomona(alpha, "pair", place, "--only-here", "--seconds", "1", "--code", shown.stdout.strip())
        assert done.returncode == 0, done.stderr
        assert [node.node_id for node in TrustStore(alpha).paired] == [started.node_id]
        assert len(TrustStore(beta).paired) == 1
        assert AddressBook(alpha).all() == (parse_address(place),)
        done = pomona(alpha, "unpair", started.node_id[:12])
        assert (done.returncode, "It knows." in done.stdout) == (0, True)
        assert TrustStore(alpha).nodes == TrustStore(beta).nodes == ()
        done = pomona(alpha, "unpair", place)
        assert (done.returncode, AddressBook(alpha).all()) == (0, ())
    assert not (alpha / "agent.json").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["agent", "code"], "No agent runs on this machine"),
        (["unpair", "nobody"], "No paired node is called 'nobody'"),
        (["pair", "no such node!", "--only-here", "--seconds", "1"], "is in sight, and it is no address"),
        (["pair", "127.0.0.1:1", "--only-here", "--seconds", "1", "--code", "123456"], "No Pomona answers"),
    ],
)
def test_what_cannot_be_is_one_plain_line(tmp_path, words, says):
    done = pomona(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
