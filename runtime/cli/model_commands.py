"""``pomona models`` on the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from runtime.cli.arguments import split

if TYPE_CHECKING:
    import argparse

    from runtime.cli.arguments import Commands


def add_model_commands(commands: Commands) -> None:
    """Add the command and its own commands."""
    models = commands.add_parser("models", help="the models on every node in reach; also layout, fetch, rm, …")
    models.add_argument("--only-here", action="store_true", help="on this machine alone")
    models.add_argument("--json", action="store_true", help="print one JSON list")
    models.set_defaults(run=_list)
    its = models.add_subparsers(metavar="COMMAND", parser_class=type(models))

    layout = its.add_parser("layout", help="what a model is made of: a folder, a name on the hub, or demo")
    layout.add_argument("model")
    layout.add_argument("--json", action="store_true", help="print one JSON object")
    layout.set_defaults(run=_layout)

    fetch = its.add_parser("fetch", help="fetch a model; interrupting it pauses, and the same command goes on")
    fetch.add_argument("model")
    fetch.add_argument(
        "--node", dest="nodes", action="append", default=[], metavar="NAME", help="for this node; again for each one"
    )
    fetch.add_argument("--split", type=split, metavar="A,B,C", help="layers for each node, in order; even without it")
    fetch.add_argument("--full", action="store_true", help="keep a full copy on each of the nodes")
    fetch.add_argument("--dry-run", action="store_true", help="only say what would come from where, and how long")
    fetch.set_defaults(run=_fetch)

    remove = its.add_parser("rm", help="delete a model from Pomona's store, on this machine without --node")
    remove.add_argument("model")
    remove.add_argument(
        "--node", dest="nodes", action="append", default=[], metavar="NAME", help="on this node; again for each one"
    )
    remove.set_defaults(run=_remove)

    search = its.add_parser("search", help="models in MLX format on the hub")
    search.add_argument("words")
    search.set_defaults(run=_search)

    favourite = its.add_parser("favourite", help="list a model first, and even while no node has it")
    favourite.add_argument("model")
    favourite.add_argument("--remove", action="store_true", help="it is none any more")
    favourite.set_defaults(run=_favourite)

    convert = its.add_parser(
        "convert", help="on a node without a GPU: keep quantized models with float32 scales, which it computes faster"
    )
    convert.add_argument("switch", choices=("on", "off"))
    convert.set_defaults(run=_convert)

    token = its.add_parser("token", help="keep the hub's token for gated models, read from standard input")
    token.set_defaults(run=_token)

    folder = its.add_parser("folder", help="where models are kept, and another place for those that come from now on")
    folder.add_argument("folder", nargs="?", default="", metavar="FOLDER", help="such as one on another disk; or usual")
    folder.set_defaults(run=_folder)
    for parser in (layout, fetch, remove):
        parser.add_argument("--revision", default="", metavar="COMMIT", help="the newest without it")


def _list(options: argparse.Namespace) -> int:
    from runtime.cli.model_list import run_list

    return run_list(only_here=options.only_here, as_json=options.json)


def _layout(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_layout

    return run_layout(options.model, options.revision, as_json=options.json)


def _fetch(options: argparse.Namespace) -> int:
    from runtime.cli.model_fetch import FetchOptions, run_fetch

    nodes = tuple(options.nodes)
    return run_fetch(FetchOptions(options.model, options.revision, nodes, options.split, options.full, options.dry_run))


def _remove(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_remove

    return run_remove(options.model, options.revision, options.nodes)


def _favourite(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_favourite

    return run_favourite(options.model, remove=options.remove)


def _search(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_search

    return run_search(options.words)


def _convert(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_convert

    return run_convert(on=options.switch == "on")


def _token(_options: argparse.Namespace) -> int:
    from runtime.cli.models import run_token

    return run_token(sys.stdin.readline())


def _folder(options: argparse.Namespace) -> int:
    from runtime.cli.models import run_folder

    return run_folder(options.folder)
