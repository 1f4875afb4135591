"""Reads the command line and calls what does the work; without a command, that is the window.

Bad input ends with one plain line and exit status 2. A command imports what does its work only when it runs: none
waits for the imports of another.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from runtime.cli.machine_commands import add_machine_commands
from runtime.cli.model_commands import add_model_commands
from runtime.cli.node_commands import add_node_commands
from runtime.cli.plan_commands import add_plan_commands
from runtime.cli.session_commands import add_session_commands
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.cli.arguments import Commands

    OpenWindow = Callable[..., int]

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_UNREAD = 141


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print its usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str], open_window: OpenWindow) -> int:
    """Run one command; returns the exit status.

    ``open_window`` is called where a command wants the window; `gui.app.run_window` says with what.
    """
    options = _parser(open_window).parse_args(arguments)
    try:
        status: int = options.run(options)
    except PomonaError as error:
        logging.getLogger(__name__).debug("refused", exc_info=error)
        sys.stderr.write(f"pomona: {error}\n")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_UNREAD
    return status


def _parser(open_window: OpenWindow) -> argparse.ArgumentParser:
    parser = _Parser(prog="pomona", description="Runs one large language model over several Macs.", allow_abbrev=False)
    parser.set_defaults(run=_window, open_window=open_window)
    commands: Commands = parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        parser_class=_Parser,
        description="Without one, the window opens.",
    )
    add_session_commands(commands)
    add_plan_commands(commands)
    add_node_commands(commands)
    add_model_commands(commands)
    add_machine_commands(commands)
    commands.add_parser("controller").set_defaults(run=_controller)  # started by Pomona itself
    return parser


def _window(options: argparse.Namespace) -> int:
    from runtime.cli.window import run_window_here

    return run_window_here(options.open_window)


def _controller(_options: argparse.Namespace) -> int:
    from runtime.cluster.controller import main as run_controller

    return run_controller()
