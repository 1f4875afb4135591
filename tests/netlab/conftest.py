"""Labs for tests that need a network of their own, and the table of how long things took on it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests import reported
from tests.netlab import lab as lab_module
from tests.netlab.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MISSING = lab_module.missing()
FOLDER = lab_module.ROOT / "tests" / "netlab"

_TIME = "time in network namespaces"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            if FOLDER in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture
def new_lab() -> Iterator[Callable[..., Lab]]:
    """Makes labs that are taken down after the test, whatever became of it."""
    with ExitStack() as labs:
        yield lambda *names, **options: labs.enter_context(Lab(*names, **options))


@pytest.fixture
def took(request: pytest.FixtureRequest) -> Callable[[str, float], float]:
    """Keeps a time for the table at the end of the run, and returns it."""

    def keep(event: str, seconds: float) -> float:
        reported.keep(request, _TIME, (event, seconds))
        return seconds

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    times = reported.rows(terminalreporter, _TIME)
    if times:
        terminalreporter.section("times in network namespaces")
        for event, seconds in times:
            terminalreporter.write_line(f"{seconds:6.2f} s  {event}")
