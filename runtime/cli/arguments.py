"""How the words of the command line are read, and the options that several commands have.

A reader raises :class:`argparse.ArgumentTypeError` with a sentence about the word that it cannot read.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands: TypeAlias = _SubParsersAction[argparse.ArgumentParser]

MOST_PORT = 65535


def natural(text: str) -> int:
    """Read a whole number from 0 on."""
    return _whole(text, least=0)


def positive(text: str) -> int:
    """Read a whole number from 1 on."""
    return _whole(text, least=1)


def port(text: str) -> int:
    """Read a port; 0 is any that is free."""
    number = natural(text)
    if number > MOST_PORT:
        raise argparse.ArgumentTypeError(f"'{text}' is no port; ports end at {MOST_PORT}")
    return number


def share(text: str) -> float:
    """Read a share of one core: ``0.5``."""
    number = _number(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share of a core; write a number up to 1, as 0.5")
    return number


def temperature(text: str) -> float:
    """Read a temperature of sampling; 0 is greedy."""
    number = _number(text)
    if not 0 <= number <= 10:
        raise argparse.ArgumentTypeError(f"'{text}' is not a temperature between 0 and 10")
    return number


def split(text: str) -> tuple[int, ...]:
    """Read the layers of each node: ``5,18,7``."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no split; write one number of layers for each node, as 5,18,7"
        ) from None


def counts(text: str) -> tuple[int, ...]:
    """Read whole numbers from 1 on: ``1,4,8``."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' are no counts; write whole numbers with commas between, as 1,4,8")
    return tuple(map(int, parts))


def names(text: str) -> tuple[str, ...]:
    """Read names of nodes: ``Studio,Pro``."""
    parts = _parts(text)
    if not all(parts):
        raise argparse.ArgumentTypeError(f"'{text}' has an empty name; write names with commas between, as Studio,Pro")
    return parts


def group(text: str) -> tuple[str, ...]:
    """Read the names of the nodes of a tensor group: ``Studio,Pro``."""
    parts = _parts(text)
    if len(parts) < 2 or not all(parts):
        raise argparse.ArgumentTypeError(f"'{text}' is no group; write the names of two nodes or more, as Studio,Pro")
    return parts


def add_mode(command: argparse.ArgumentParser) -> None:
    """Add ``--mode``."""
    command.add_argument("--mode", choices=("pipeline", "tensor"), default="pipeline", help="pipeline without it")


def add_hops(command: argparse.ArgumentParser) -> None:
    """Add ``--hops``."""
    command.add_argument(
        "--hops", choices=("tls", "mlx"), default="tls", help="how hidden states travel; mlx is not encrypted (tls)"
    )


def add_search(command: argparse.ArgumentParser) -> None:
    """Add ``--seconds`` and ``--only-here``, which bound the search for nodes."""
    command.add_argument("--seconds", type=positive, default=4, metavar="N", help="how long to look for nodes (4)")
    command.add_argument("--only-here", action="store_true", help="look on this machine alone")


def _whole(text: str, *, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {least}")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")  # in no range


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))
