"""What tests have kept for a table at the end of the run: it travels with the report, whoever runs the test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def keep(request: pytest.FixtureRequest, name: str, row: Any) -> None:
    """Keep ``row`` for the table ``name``."""
    request.node.user_properties.append((name, row))


def rows(terminalreporter: pytest.TerminalReporter, name: str) -> list[Any]:
    """All that was kept for it."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    return [
        row
        for report in reports
        if getattr(report, "when", "") == "call"
        for kept_for, row in report.user_properties
        if kept_for == name
    ]
