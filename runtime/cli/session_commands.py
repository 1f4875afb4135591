"""The commands that run a model: ``serve``, ``chat`` and ``bench``."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from runtime.server.options import DEFAULT_API_PORT, WAITING_LIMIT, ApiOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cli.place import PlaceOptions

KEY_VARIABLE = "POMONA_API_KEY"
_LOOPBACK, _EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104  what --listen network means


def add_session_commands(commands: Any, readers: Readers) -> None:
    """Add them to the command line."""
    serve = commands.add_parser("serve", help="run a model for other programs, by an API like OpenAI's")
    _add_place(serve, readers)
    serve.add_argument(
        "--port", type=readers.port, default=DEFAULT_API_PORT, help=f"of the API ({DEFAULT_API_PORT}); 0 is any"
    )
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
        type=readers.positive,
        default=WAITING_LIMIT,
        metavar="N",
        help=f"requests at once ({WAITING_LIMIT})",
    )
    serve.set_defaults(run=_serve)

    chat = commands.add_parser("chat", help="talk with a model in this terminal")
    _add_place(chat, readers)
    chat.add_argument("--prompt", help="ask this and end; a chat without it")
    chat.add_argument(
        "--max-tokens", type=readers.positive, default=1024, metavar="N", help="the longest answer (1024)"
    )
    chat.add_argument("--temperature", type=readers.temperature, default=0.0, metavar="T", help="0 is greedy (0)")
    chat.add_argument("--seed", type=readers.natural, metavar="N", help="repeats a random answer")
    chat.add_argument("--json", action="store_true", help="print one JSON object at the end instead of the text")
    chat.set_defaults(run=_chat)

    bench = commands.add_parser("bench", help="how fast a model is where it runs")
    _add_place(bench, readers)
    bench.add_argument("--compare", choices=("even",), help="measure an even split as well")
    bench.add_argument("--prompt", type=_counts, default=(512,), metavar="N,N", help="tokens of the prompts (512)")
    bench.add_argument("--generate", type=readers.positive, default=128, metavar="N", help="tokens of answers (128)")
    bench.add_argument("--concurrency", type=_counts, default=(1,), metavar="N,N", help="clients at one time (1)")
    bench.add_argument("--repeat", type=readers.positive, default=3, metavar="N", help="rounds after a warm-up (3)")
    forms = bench.add_mutually_exclusive_group()
    for form in ("json", "markdown", "csv"):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=f"print it as {form}")
    bench.set_defaults(run=_bench, form="text")


class Readers:
    """How the words of the command line are read; each raises :class:`argparse.ArgumentTypeError`."""

    def __init__(
        self,
        *,
        port: Callable[[str], int],
        positive: Callable[[str], int],
        natural: Callable[[str], int],
        temperature: Callable[[str], float],
        split: Callable[[str], tuple[int, ...]],
    ) -> None:
        self.port = port
        self.positive = positive
        self.natural = natural
        self.temperature = temperature
        self.split = split


def _add_place(command: argparse.ArgumentParser, readers: Readers) -> None:
    command.add_argument("model", metavar="MODEL", help="a folder, a name here or on the hub, or demo")
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--nodes",
        type=_names,
        default=(),
        metavar="A,B",
        help="names of nodes, or beginnings of their ids; all without it",
    )
    where.add_argument(
        "--virtual-nodes", type=readers.positive, metavar="N", help="so many on this machine instead (demo: 3)"
    )
    command.add_argument("--split", type=readers.split, metavar="A,B,C", help="layers for each node, in order")
    command.add_argument("--mode", choices=("pipeline", "tensor"), default="pipeline", help="pipeline without it")
    command.add_argument(
        "--goal", choices=("chat", "requests", "even", "room"), help="what the split is best at, if none is given"
    )
    command.add_argument("--context", type=readers.positive, metavar="N", help="tokens to have room for (8192)")
    command.add_argument(
        "--hops", choices=("tls", "mlx"), default="tls", help="how hidden states travel; mlx is not encrypted (tls)"
    )


def _counts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' are no counts; write whole numbers with commas between, as 1,4,8")
    return tuple(map(int, parts))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' has an empty name; write names with commas between, as Studio,Pro")
    return names


def _place(options: argparse.Namespace) -> PlaceOptions:
    from runtime.cli.place import PlaceOptions  # a command imports only what it needs

    return PlaceOptions(
        options.model,
        options.nodes,
        options.virtual_nodes,
        options.split,
        options.mode,
        options.goal,
        options.context,
    )


def _serve(options: argparse.Namespace, _open_window: object) -> int:
    from runtime.agent.folder import data_folder  # a command imports only what it needs
    from runtime.cli.serve import ServeOptions, run_serve
    from runtime.server.keys import own_api_key

    host = {"loopback": _LOOPBACK, "network": _EVERYWHERE}.get(options.listen, options.listen)
    key = options.api_key
    if not key and host != _LOOPBACK:
        key = own_api_key(data_folder())
    api = ApiOptions(host, options.port, api_key=key, waiting_limit=options.waiting)
    return run_serve(ServeOptions(_place(options), api, options.hops))


def _chat(options: argparse.Namespace, _open_window: object) -> int:
    from runtime.cli.console import Question, run_console  # a command imports only what it needs
    from runtime.cli.demo import default_prompt, run_until_over

    question = Question(options.prompt or default_prompt(), options.max_tokens, options.temperature, options.seed)
    return run_until_over(run_console(_place(options), question, hops=options.hops, as_json=options.json))


def _bench(options: argparse.Namespace, _open_window: object) -> int:
    from runtime.cli.bench import BenchOptions, run_bench  # a command imports only what it needs

    return run_bench(
        BenchOptions(
            _place(options),
            options.prompt,
            options.generate,
            options.concurrency,
            options.repeat,
            options.compare == "even",
            options.form,
        )
    )
