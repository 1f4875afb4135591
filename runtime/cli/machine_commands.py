"""The commands about this machine and this copy of Pomona: ``doctor``, ``report``, ``calibrate``, ``licences``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runtime.cli.arguments import add_search, port

if TYPE_CHECKING:
    import argparse

    from runtime.cli.arguments import Commands


def add_machine_commands(commands: Commands) -> None:
    """Add them to the command line."""
    doctor = commands.add_parser("doctor", help="what is wrong on this machine, and what to do")
    doctor.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="folders of models that must be readable")
    doctor.add_argument("--port", type=port, default=0, help="the port that an agent is to have; any without it")
    doctor.add_argument("--json", action="store_true", help="print one JSON list of findings")
    doctor.set_defaults(run=_doctor)

    report = commands.add_parser("report", help="the logs of the newest job on all nodes, with names replaced, to show")
    add_search(report)
    report.add_argument("--with-names", action="store_true", help="leave names and addresses as they are")
    report.set_defaults(run=_report)

    calibrate = commands.add_parser("calibrate", help="measure how fast this machine reads weights, for better plans")
    calibrate.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")
    calibrate.set_defaults(run=_calibrate)

    licences = commands.add_parser("licences", help="whose work is in Pomona, and under which licences")
    licences.set_defaults(run=_licences)


def _doctor(options: argparse.Namespace) -> int:
    from runtime.cli.doctor import DoctorOptions, run_doctor

    return run_doctor(DoctorOptions(options.port, tuple(options.models), options.json))


def _report(options: argparse.Namespace) -> int:
    from runtime.cli.report import run_report

    return run_report(options.seconds, only_here=options.only_here, with_names=options.with_names)


def _calibrate(options: argparse.Namespace) -> int:
    from runtime.cli.calibrate import run_calibrate

    return run_calibrate(as_json=options.json)


def _licences(_options: argparse.Namespace) -> int:
    from runtime.cli.licences import run_licences

    return run_licences()
