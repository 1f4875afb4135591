"""The commands that run a model: ``demo``, ``serve``, ``chat`` and ``bench``."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from runtime.cli.arguments import add_hops, add_mode, counts, names, natural, port, positive, split, temperature
from runtime.server.options import DEFAULT_API_PORT, EVERYWHERE, LOOPBACK, WAITING_LIMIT, ApiOptions

if TYPE_CHECKING:
    import argparse

    from runtime.cli.arguments import Commands
    from runtime.cli.place import PlaceOptions

KEY_VARIABLE = "POMONA_API_KEY"


def add_session_commands(commands: Commands) -> None:
    """Add them to the command line."""
    _add_demo(commands)
    _add_serve(commands)
    _add_chat(commands)
    _add_bench(commands)


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser("demo", help="try it on this machine alone: virtual nodes and a small real model")
    demo.add_argument("--headless", action="store_true", help="in this terminal, without a window")
    demo.add_argument("--nodes", type=int, default=3, metavar="N", help="virtual nodes to start (3)")
    demo.add_argument("--split", type=split, metavar="A,B,C", help="layers for each node, in order; even without it")
    add_mode(demo)
    add_hops(demo)
    _add_question(demo, most_tokens=256)
    demo.add_argument(
        "--self-test", action="store_true", help="use the window by itself, once: start, ask, print the answer, quit"
    )
    demo.set_defaults(run=_demo)


def _add_serve(commands: Commands) -> None:
    serve = commands.add_parser("serve", help="run a model for other programs, by an API like OpenAI's")
    _add_place(serve)
    serve.add_argument("--port", type=port, default=DEFAULT_API_PORT, help=f"of the API ({DEFAULT_API_PORT}); 0 is any")
    serve.add_argument(
        "--listen",
        default="loopback",
        metavar="WHERE",
        help="who can reach the API: loopback (without it), network, or one of this machine's addresses",
    )
    serve.add_argument(
        "--api-key",
        default=os.environ.get(KEY_VARIABLE, ""),
        metavar="KEY",
        help=f"what clients have to show (or {KEY_VARIABLE}); where others can reach the API one is made without it",
    )
    serve.add_argument(
        "--waiting",
        type=positive,
        default=WAITING_LIMIT,
        metavar="N",
        help=f"requests at once ({WAITING_LIMIT})",
    )
    serve.set_defaults(run=_serve)


def _add_chat(commands: Commands) -> None:
    chat = commands.add_parser("chat", help="talk with a model in this terminal")
    _add_place(chat)
    _add_question(chat, most_tokens=1024)
    chat.set_defaults(run=_chat)


def _add_bench(commands: Commands) -> None:
    bench = commands.add_parser("bench", help="how fast a model is where it runs")
    _add_place(bench)
    bench.add_argument("--compare", choices=("even",), help="measure an even split as well")
    bench.add_argument("--prompt", type=counts, default=(512,), metavar="N,N", help="tokens of the prompts (512)")
    bench.add_argument("--generate", type=positive, default=128, metavar="N", help="tokens of answers (128)")
    bench.add_argument("--concurrency", type=counts, default=(1,), metavar="N,N", help="clients at one time (1)")
    bench.add_argument("--repeat", type=positive, default=3, metavar="N", help="rounds after a warm-up (3)")
    forms = bench.add_mutually_exclusive_group()
    for form in ("json", "markdown", "csv"):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=f"print it as {form}")
    bench.set_defaults(run=_bench, form="text")


def _add_place(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a folder, a name here or on the hub, or demo")
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--nodes",
        type=names,
        default=(),
        metavar="A,B",
        help="names of nodes, or beginnings of their ids; all without it",
    )
    where.add_argument("--virtual-nodes", type=positive, metavar="N", help="so many on this machine instead (demo: 3)")
    command.add_argument("--split", type=split, metavar="A,B,C", help="layers for each node, in order")
    add_mode(command)
    command.add_argument(
        "--goal", choices=("chat", "requests", "even", "room"), help="what the split is best at, if none is given"
    )
    command.add_argument("--context", type=positive, metavar="N", help="tokens to have room for (8192)")
    add_hops(command)


def _add_question(command: argparse.ArgumentParser, *, most_tokens: int) -> None:
    command.add_argument("--prompt", help="ask this and end; a chat without it")
    command.add_argument(
        "--max-tokens", type=positive, default=most_tokens, metavar="N", help=f"the longest answer ({most_tokens})"
    )
    command.add_argument("--temperature", type=temperature, default=0.0, metavar="T", help="0 is greedy (0)")
    command.add_argument("--seed", type=natural, metavar="N", help="repeats a random answer")
    command.add_argument("--json", action="store_true", help="print one JSON object at the end instead of the text")


def _place(options: argparse.Namespace) -> PlaceOptions:
    from runtime.cli.place import PlaceOptions

    return PlaceOptions(
        options.model,
        options.nodes,
        options.virtual_nodes,
        options.split,
        options.mode,
        options.goal,
        options.context,
    )


def _demo(options: argparse.Namespace) -> int:
    from runtime.cli.demo import DemoOptions, run_demo

    open_window = options.open_window
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


def _serve(options: argparse.Namespace) -> int:
    from runtime.agent.folder import data_folder
    from runtime.cli.serve import ServeOptions, run_serve
    from runtime.server.keys import own_api_key

    host = {"loopback": LOOPBACK, "network": EVERYWHERE}.get(options.listen, options.listen)
    key = options.api_key
    if not key and host != LOOPBACK:
        key = own_api_key(data_folder())
    api = ApiOptions(host, options.port, api_key=key, waiting_limit=options.waiting)
    return run_serve(ServeOptions(_place(options), api, options.hops))


def _chat(options: argparse.Namespace) -> int:
    from runtime.cli.console import Question, run_console
    from runtime.cli.demo import default_prompt, run_until_over

    question = Question(options.prompt or default_prompt(), options.max_tokens, options.temperature, options.seed)
    return run_until_over(run_console(_place(options), question, hops=options.hops, as_json=options.json))


def _bench(options: argparse.Namespace) -> int:
    from runtime.bench.order import BenchOrder
    from runtime.cli.bench import BenchOptions, run_bench

    return run_bench(
        BenchOptions(
            _place(options),
            BenchOrder(options.prompt, options.generate, options.concurrency, options.repeat),
            options.compare == "even",
            options.hops,
            options.form,
        )
    )
