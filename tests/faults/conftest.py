"""The fleet that faults are done to, and the table of what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from discovery.home import temporary_home
from tests import reported
from tests.faults.fleet import FORCED, Fleet, environment
from tests.netlab.lab import missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.seen import Seen

NOTICED_SECONDS = 5.0
"""What is promised."""
SLOW_MACHINE = 3.0
"""How much longer it may take where two cores carry all nodes and whatever else runs."""

_ROW = "fault"


class Note(Protocol):
    """Keeps a row for the table, and checks that the fault was noticed in time."""

    def __call__(self, fault: str, where: str, outcome: str, seconds: float | None, words: str = "") -> None: ...


@pytest.fixture(scope="module")
def running_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with temporary_home() as home:
        fleet = Fleet(home, folder)
        with environment(PYTHONPATH=str(FORCED), POMONA_FAULTS=str(fleet.wishes)):
            try:
                fleet.start()
                yield fleet
            finally:
                fleet.close()


@pytest.fixture
def fleet(running_fleet: Fleet) -> Iterator[Fleet]:
    """Three nodes whose processes do what is wished; the next test finds no worker, no wish and no harm left."""
    yield running_fleet
    running_fleet.mend()
    running_fleet.forget_wishes()
    assert running_fleet.workers() == []


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    def keep(fault: str, where: str, outcome: str, seconds: float | None, words: str = "") -> None:
        reported.keep(request, _ROW, (fault, where, outcome, seconds, words))
        assert seconds is None or seconds < NOTICED_SECONDS * SLOW_MACHINE

    return keep


@pytest.fixture
def needs_root() -> None:
    if reason := missing():
        pytest.skip(reason)


def told(seen: Seen) -> str:
    return seen.reasons[0] if seen.reasons else seen.failed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = reported.rows(terminalreporter, _ROW)
    if rows:
        terminalreporter.section("faults: noticed after, and what was told")
        for fault, where, outcome, seconds, words in rows:
            after = "      -" if seconds is None else f"{seconds:5.2f} s"
            terminalreporter.write_line(f"{after}  {fault:<22} {where:<16} {outcome:<12} {words}")
