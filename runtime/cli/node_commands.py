"""The commands about nodes and whom to trust: ``agent``, ``login``, ``nodes``, ``links``, ``pair``, ``unpair``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from discovery.address import DEFAULT_PORT
from runtime.cli.arguments import add_search, port, positive, share

if TYPE_CHECKING:
    import argparse

    from runtime.cli.arguments import Commands


def add_node_commands(commands: Commands) -> None:
    """Add them to the command line."""
    _add_agent(commands)

    login = commands.add_parser("login", help="share this Mac whenever you log in, or no longer")
    login.add_argument("action", nargs="?", choices=("on", "off", "status"), default="status", help="status without it")
    login.set_defaults(run=_login)

    nodes = commands.add_parser("nodes", help="which nodes can be used from here, and what each one has")
    add_search(nodes)
    nodes.add_argument(
        "--at-most",
        nargs=2,
        metavar=("NODE", "AMOUNT"),
        help="Pomona may use so much of that node's memory from now on: 24GB, 60%%, or usual",
    )
    nodes.add_argument("--json", action="store_true", help="print one JSON list with all that is known")
    nodes.set_defaults(run=_nodes)

    links = commands.add_parser("links", help="what joins the nodes, how fast it is, and which way a job takes")
    add_search(links)
    links.add_argument("--again", action="store_true", help="measure what is known already, too")
    links.add_argument(
        "--use",
        nargs=3,
        metavar=("NODE", "NODE", "LINK"),
        help="the link that jobs take between two nodes: its name, one of its addresses, or fastest",
    )
    links.add_argument("--json", action="store_true", help="print one JSON list")
    links.set_defaults(run=_links)

    pair = commands.add_parser("pair", help="make another machine a node that this one can use, and the reverse")
    pair.add_argument("node", metavar="NODE", help="its name, the beginning of its id, or its address (host[:port])")
    pair.add_argument("--code", metavar="DIGITS", help="the code that it shows; asked for without it")
    add_search(pair)
    pair.set_defaults(run=_pair)

    unpair = commands.add_parser("unpair", help="trust a machine no more, or forget an address")
    unpair.add_argument("node", metavar="NODE", help="its name, the beginning of its id, or an address that was typed")
    unpair.set_defaults(run=_unpair)


def _add_agent(commands: Commands) -> None:
    agent = commands.add_parser("agent", help="make this machine a node; `agent code` shows a pairing code on it")
    agent.add_argument(
        "action", nargs="?", choices=("run", "code"), default="run", help="run (without it), or show a pairing code"
    )
    agent.add_argument("--port", type=port, help=f"listen here; {DEFAULT_PORT} without it, or any that is free")
    agent.add_argument("--name", help="how others see this node; the machine's own name without it")
    agent.add_argument("--virtual-memory", type=positive, metavar="BYTES", help="a virtual node with this budget")
    agent.add_argument(
        "--listen",
        choices=("network", "auto", "loopback"),
        default="network",
        help="who can reach it: network (without it), where strangers may only ask who it is and pair; auto is this "
        "machine alone until it is paired or shows a code",
    )
    agent.add_argument("--trust", type=Path, metavar="FILE", help="a controller's certificate to trust from the start")
    agent.add_argument(
        "--virtual-cpu", type=share, metavar="SHARE", help="and this share of one core, as 0.5 (Linux, root)"
    )
    agent.add_argument(
        "--virtual-bandwidth", type=positive, metavar="GB/s", help="and memory of this speed, as far as plans go"
    )
    agent.add_argument("--owned", action="store_true", help="end when standard input ends")
    agent.add_argument("--at-login", action="store_true", help="as the login item starts it: end when the app is gone")
    agent.add_argument(
        "--with-window", action="store_true", help="end when no window is open on this machine and no model runs"
    )
    agent.set_defaults(run=_agent)


def _agent(options: argparse.Namespace) -> int:
    if options.action == "code":
        from runtime.cli.pairing import run_code

        return run_code()
    from runtime.agent.main import AgentOptions, run_agent

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    return run_agent(
        AgentOptions(
            options.port,
            options.name,
            options.listen,
            options.virtual_memory,
            options.virtual_cpu,
            options.virtual_bandwidth and options.virtual_bandwidth * 10**9,
            options.trust,
            owned=options.owned,
            at_login=options.at_login,
            with_window=options.with_window,
        )
    )


def _login(options: argparse.Namespace) -> int:
    from runtime.cli.login import run_login

    return run_login(options.action)


def _nodes(options: argparse.Namespace) -> int:
    from runtime.cli.nodes import run_nodes

    at_most = (options.at_most[0], options.at_most[1]) if options.at_most else None
    return run_nodes(options.seconds, at_most, only_here=options.only_here, as_json=options.json)


def _links(options: argparse.Namespace) -> int:
    from runtime.cli.links import LinkOptions, run_links

    use = (options.use[0], options.use[1], options.use[2]) if options.use else None
    return run_links(LinkOptions(options.seconds, options.only_here, options.again, use, options.json))


def _pair(options: argparse.Namespace) -> int:
    from runtime.cli.pairing import run_pair

    return run_pair(options.node, options.code, options.seconds, only_here=options.only_here)


def _unpair(options: argparse.Namespace) -> int:
    from runtime.cli.pairing import run_unpair

    return run_unpair(options.node)
