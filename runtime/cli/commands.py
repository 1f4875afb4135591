"""Reads the command line and calls what does the work; without a command, that is the window.

Bad input ends with one plain line and exit status 2.
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from discovery.address import DEFAULT_PORT
from runtime.cli.model_commands import add_models
from runtime.cli.session_commands import Readers, add_session_commands
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.cli.plan import ImaginedLink, ImaginedNode

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

    ``open_window`` is called with a home and a model folder where a command wants the window, and with ``self_test``.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options, open_window)
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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pomona", description="Runs one large language model over several Macs.", allow_abbrev=False)
    parser.set_defaults(run=_window)
    commands = parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        parser_class=_Parser,
        description="Without one, the window opens.",
    )

    demo = commands.add_parser("demo", help="try it on this machine alone: virtual nodes and a small real model")
    demo.add_argument("--headless", action="store_true", help="in this terminal, without a window")
    demo.add_argument("--nodes", type=int, default=3, metavar="N", help="virtual nodes to start (3)")
    demo.add_argument("--split", type=_split, metavar="A,B,C", help="layers for each node, in order; even without it")
    demo.add_argument("--mode", choices=("pipeline", "tensor"), default="pipeline", help="pipeline without it")
    demo.add_argument(
        "--hops", choices=("tls", "mlx"), default="tls", help="how hidden states travel; mlx is not encrypted (tls)"
    )
    demo.add_argument("--prompt", help="ask this and end; a chat without it")
    demo.add_argument("--max-tokens", type=_positive, default=256, metavar="N", help="the longest answer (256)")
    demo.add_argument("--temperature", type=_temperature, default=0.0, metavar="T", help="0 is greedy, and the default")
    demo.add_argument("--seed", type=_natural, metavar="N", help="repeats a random answer")
    demo.add_argument("--json", action="store_true", help="print one JSON object at the end instead of the text")
    demo.add_argument(
        "--self-test", action="store_true", help="use the window by itself, once: start, ask, print the answer, quit"
    )
    demo.set_defaults(run=_demo)

    readers = Readers(port=_port, positive=_positive, natural=_natural, temperature=_temperature, split=_split)
    add_session_commands(commands, readers)

    check = commands.add_parser("check", help="compare a split of a model with the whole model, on this machine")
    check.add_argument("model", help="a model's folder, a config.json (random weights are made for it), or demo")
    ways = check.add_mutually_exclusive_group()
    ways.add_argument("--ranks", type=_positive, default=2, metavar="N", help="worker processes to share evenly (2)")
    ways.add_argument("--split", type=_split, metavar="A,B,C", help="layers for each worker process, in order")
    check.add_argument("--mode", choices=("pipeline", "tensor"), default="pipeline", help="pipeline without it")
    check.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")
    check.set_defaults(run=_check)

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
        "--split", type=_split, metavar="A,B,C", help="layers for each node, in order; the best without it"
    )
    plan.add_argument("--mode", choices=("pipeline", "tensor"), default="pipeline", help="pipeline without it")
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
        type=_names,
        default=[],
        metavar="NAME,NAME",
        help="these nodes share every layer of one stage",
    )
    plan.add_argument("--context", type=_positive, metavar="N", help="tokens to have room for (8192)")
    plan.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    plan.set_defaults(run=_plan)

    _add_node_commands(commands)
    add_models(commands, _split)

    doctor = commands.add_parser("doctor", help="what is wrong on this machine, and what to do")
    doctor.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="folders of models that must be readable")
    doctor.add_argument("--port", type=_port, default=0, help="the port that an agent is to have; any without it")
    doctor.add_argument("--json", action="store_true", help="print one JSON list of findings")
    doctor.set_defaults(run=_doctor)

    report = commands.add_parser("report", help="the logs of the newest job on all nodes, with names replaced, to show")
    report.add_argument("--seconds", type=_positive, default=4, metavar="N", help="how long to look for nodes (4)")
    report.add_argument("--only-here", action="store_true", help="look on this machine alone")
    report.add_argument("--with-names", action="store_true", help="leave names and addresses as they are")
    report.set_defaults(run=_report)

    calibrate = commands.add_parser("calibrate", help="measure how fast this machine reads weights, for better plans")
    calibrate.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")
    calibrate.set_defaults(run=_calibrate)

    licences = commands.add_parser("licences", help="whose work is in Pomona, and under which licences")
    licences.set_defaults(run=_licences)

    # Started by Pomona itself.
    commands.add_parser("controller").set_defaults(run=_controller)
    return parser


def _add_node_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Those about nodes and the trust between them."""
    agent = commands.add_parser("agent", help="make this machine a node; `agent code` shows a pairing code on it")
    agent.add_argument(
        "action", nargs="?", choices=("run", "code"), default="run", help="run (without it), or show a pairing code"
    )
    agent.add_argument("--port", type=_port, help=f"listen here; {DEFAULT_PORT} without it, or any that is free")
    agent.add_argument("--name", help="how others see this node; the machine's own name without it")
    agent.add_argument("--virtual-memory", type=_positive, metavar="BYTES", help="a virtual node with this budget")
    agent.add_argument(
        "--listen",
        choices=("network", "auto", "loopback"),
        default="network",
        help="who can reach it: network (without it), where strangers may only ask who it is and pair; auto is this "
        "machine alone until it is paired or shows a code",
    )
    agent.add_argument("--trust", type=Path, metavar="FILE", help="a controller's certificate to trust from the start")
    agent.add_argument(
        "--virtual-cpu", type=_share, metavar="SHARE", help="and this share of one core, as 0.5 (Linux, root)"
    )
    agent.add_argument(
        "--virtual-bandwidth", type=_positive, metavar="GB/s", help="and memory of this speed, as far as plans go"
    )
    agent.add_argument("--owned", action="store_true", help="end when standard input ends")
    agent.add_argument("--at-login", action="store_true", help="as the login item starts it: end when the app is gone")
    agent.add_argument(
        "--with-window", action="store_true", help="end when no window is open on this machine and no model runs"
    )
    agent.set_defaults(run=_agent)

    login = commands.add_parser("login", help="share this Mac whenever you log in, or no longer")
    login.add_argument("action", nargs="?", choices=("on", "off", "status"), default="status", help="status without it")
    login.set_defaults(run=_login)

    nodes = commands.add_parser("nodes", help="which nodes can be used from here, and what each one has")
    nodes.add_argument("--seconds", type=_positive, default=4, metavar="N", help="how long to look (4)")
    nodes.add_argument("--only-here", action="store_true", help="look on this machine alone")
    nodes.add_argument(
        "--at-most",
        nargs=2,
        metavar=("NODE", "AMOUNT"),
        help="Pomona may use so much of that node's memory from now on: 24GB, 60%%, or usual",
    )
    nodes.add_argument("--json", action="store_true", help="print one JSON list with all that is known")
    nodes.set_defaults(run=_nodes)

    _add_links(commands)

    pair = commands.add_parser("pair", help="make another machine a node that this one can use, and the reverse")
    pair.add_argument("node", metavar="NODE", help="its name, the beginning of its id, or its address (host[:port])")
    pair.add_argument("--code", metavar="DIGITS", help="the code that it shows; asked for without it")
    pair.add_argument("--seconds", type=_positive, default=4, metavar="N", help="how long to look for it (4)")
    pair.add_argument("--only-here", action="store_true", help="look on this machine alone")
    pair.set_defaults(run=_pair)

    unpair = commands.add_parser("unpair", help="trust a machine no more, or forget an address")
    unpair.add_argument("node", metavar="NODE", help="its name, the beginning of its id, or an address that was typed")
    unpair.set_defaults(run=_unpair)


def _add_links(commands: argparse._SubParsersAction[_Parser]) -> None:
    links = commands.add_parser("links", help="what joins the nodes, how fast it is, and which way a job takes")
    links.add_argument("--seconds", type=_positive, default=4, metavar="N", help="how long to look for nodes (4)")
    links.add_argument("--only-here", action="store_true", help="look on this machine alone")
    links.add_argument("--again", action="store_true", help="measure what is known already, too")
    links.add_argument(
        "--use",
        nargs=3,
        metavar=("NODE", "NODE", "LINK"),
        help="the link that jobs take between two nodes: its name, one of its addresses, or fastest",
    )
    links.add_argument("--json", action="store_true", help="print one JSON list")
    links.set_defaults(run=_links)


def _window(_options: argparse.Namespace, open_window: OpenWindow) -> int:
    from runtime.cli.window import run_window_here  # a command imports only what it needs

    return run_window_here(open_window)


def _demo(options: argparse.Namespace, open_window: OpenWindow) -> int:
    from runtime.cli.demo import DemoOptions, run_demo  # a command imports only what it needs

    return run_demo(
        DemoOptions(
            headless=options.headless,
            node_count=options.nodes,
            split=options.split,
            mode=options.mode,
            prompt=options.prompt,
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            seed=options.seed,
            hops=options.hops,
            as_json=options.json,
        ),
        functools.partial(open_window, self_test=True) if options.self_test else open_window,
    )


def _check(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.check import CheckOptions, run_check  # a command imports only what it needs

    return run_check(CheckOptions(options.model, options.ranks, options.split, options.mode, options.json))


def _plan(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.plan import PlanOptions, run_plan  # a command imports only what it needs

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


def _agent(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    if options.action == "code":
        from runtime.cli.pairing import run_code  # a command imports only what it needs

        return run_code()
    from runtime.agent.main import AgentOptions, run_agent  # a command imports only what it needs

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


def _login(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.login import run_login  # a command imports only what it needs

    return run_login(options.action)


def _nodes(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.nodes import run_nodes  # a command imports only what it needs

    at_most = (options.at_most[0], options.at_most[1]) if options.at_most else None
    return run_nodes(options.seconds, at_most, only_here=options.only_here, as_json=options.json)


def _links(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.links import LinkOptions, run_links  # a command imports only what it needs

    use = (options.use[0], options.use[1], options.use[2]) if options.use else None
    return run_links(LinkOptions(options.seconds, options.only_here, options.again, use, options.json))


def _pair(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.pairing import run_pair  # a command imports only what it needs

    return run_pair(options.node, options.code, options.seconds, only_here=options.only_here)


def _unpair(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.pairing import run_unpair  # a command imports only what it needs

    return run_unpair(options.node)


def _doctor(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.doctor import DoctorOptions, run_doctor  # a command imports only what it needs

    return run_doctor(DoctorOptions(options.port, tuple(options.models), options.json))


def _report(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.report import run_report  # a command imports only what it needs

    return run_report(options.seconds, only_here=options.only_here, with_names=options.with_names)


def _calibrate(options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.calibrate import run_calibrate  # a command imports only what it needs

    return run_calibrate(as_json=options.json)


def _licences(_options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cli.licences import run_licences  # a command imports only what it needs

    return run_licences()


def _controller(_options: argparse.Namespace, _open_window: OpenWindow) -> int:
    from runtime.cluster.controller import main as run_controller  # a command imports only what it needs

    return run_controller()


def _split(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no split; write one number of layers for each node, as 5,18,7"
        ) from None


def _node(text: str) -> ImaginedNode:
    from runtime.cli.plan import parse_node  # a command imports only what it needs

    try:
        return parse_node(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no node; write its name, memory in GB and GB/s, as Studio=96@400"
        ) from None


def _link(text: str) -> ImaginedLink:
    from runtime.cli.plan import parse_link  # a command imports only what it needs

    try:
        return parse_link(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no link; write two nodes, milliseconds and GB/s, as Studio,Pro=0.05@5"
        ) from None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no group; write the names of two nodes or more, as Studio,Pro")
    return names


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share of a core; write a number up to 1, as 0.5")
    return share


def _natural(text: str) -> int:
    return _whole(text, least=0)


def _positive(text: str) -> int:
    return _whole(text, least=1)


def _whole(text: str, *, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least {least}")
    return number


def _port(text: str) -> int:
    number = _natural(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port; ports end at 65535")
    return number


def _temperature(text: str) -> float:
    try:
        temperature = float(text)
    except ValueError:
        temperature = -1.0
    if not 0 <= temperature <= 10:
        raise argparse.ArgumentTypeError(f"'{text}' is not a temperature between 0 and 10")
    return temperature
