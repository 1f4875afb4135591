"""The commands that judge a split before a model runs: ``plan`` and ``check``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from runtime.cli.arguments import add_mode, group, positive, split

if TYPE_CHECKING:
    from runtime.cli.arguments import Commands
    from runtime.cli.plan import ImaginedLink, ImaginedNode


def add_plan_commands(commands: Commands) -> None:
    """Add them to the command line."""
    _add_check(commands)
    _add_plan(commands)


def _add_check(commands: Commands) -> None:
    check = commands.add_parser("check", help="compare a split of a model with the whole model, on this machine")
    check.add_argument("model", help="a model's folder, a config.json (random weights are made for it), or demo")
    ways = check.add_mutually_exclusive_group()
    ways.add_argument("--ranks", type=positive, default=2, metavar="N", help="worker processes to share evenly (2)")
    ways.add_argument("--split", type=split, metavar="A,B,C", help="layers for each worker process, in order")
    add_mode(check)
    check.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")
    check.set_defaults(run=_check)


def _add_plan(commands: Commands) -> None:
    plan = commands.add_parser("plan", help="the best split of a model over real or imagined nodes, before you load it")
    plan.add_argument("model", help="a model's folder, or demo")
    plan.add_argument(
        "--node",
        dest="nodes",
        action="append",
        type=_node,
        default=[],
        metavar="NAME=BUDGET[@GB/s]",
        help="a node with its memory in GB (or 500MB) and the speed of its memory (100); once for each node. "
        "Without any: the nodes in reach",
    )
    plan.add_argument(
        "--link",
        dest="links",
        action="append",
        type=_link,
        default=[],
        metavar="NAME,NAME=MS[@GB/s]",
        help="the round trip in milliseconds and the bandwidth between two such nodes (0.3@1)",
    )
    plan.add_argument(
        "--goal",
        choices=("chat", "requests", "even", "room"),
        default="chat",
        help="fastest chat (without it), most requests, even, most room left",
    )
    plan.add_argument(
        "--split", type=split, metavar="A,B,C", help="layers for each node, in order; the best without it"
    )
    add_mode(plan)
    plan.add_argument(
        "--use", dest="needed", action="append", default=[], metavar="NAME", help="this node takes part in any case"
    )
    plan.add_argument(
        "--leave-out", dest="left_out", action="append", default=[], metavar="NAME", help="this node does not"
    )
    plan.add_argument(
        "--group",
        dest="groups",
        action="append",
        type=group,
        default=[],
        metavar="NAME,NAME",
        help="these nodes share every layer of one stage",
    )
    plan.add_argument("--context", type=positive, metavar="N", help="tokens to have room for (8192)")
    plan.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    plan.set_defaults(run=_plan)


def _node(text: str) -> ImaginedNode:
    from runtime.cli.plan import parse_node

    try:
        return parse_node(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no node; write its name, memory in GB and GB/s, as Studio=96@400"
        ) from None


def _link(text: str) -> ImaginedLink:
    from runtime.cli.plan import parse_link

    try:
        return parse_link(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no link; write two nodes, milliseconds and GB/s, as Studio,Pro=0.05@5"
        ) from None


def _check(options: argparse.Namespace) -> int:
    from runtime.cli.check import CheckOptions, run_check

    return run_check(CheckOptions(options.model, options.ranks, options.split, options.mode, options.json))


def _plan(options: argparse.Namespace) -> int:
    from runtime.cli.plan import PlanOptions, run_plan

    return run_plan(
        PlanOptions(
            options.model,
            tuple(options.nodes),
            options.goal,
            options.split,
            options.mode,
            options.context,
            options.json,
            tuple(options.needed),
            tuple(options.left_out),
            tuple(options.groups),
            tuple(options.links),
        )
    )
