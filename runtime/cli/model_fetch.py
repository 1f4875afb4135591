"""``pomona models fetch``: have a model, or each node its layers of it, where it is needed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from runtime.agent.folder import data_folder, open_home
from runtime.cli.model_nodes import named_nodes, nodes_in_reach
from runtime.cluster.model_fetch import NodesFetch
from runtime.cluster.model_names import find_model, own_library, sources_of
from runtime.errors import PomonaError
from runtime.models.fetch.transfer import Progress, Transfer
from runtime.models.parts import model_parts, stage_parts
from runtime.planning.plan import even_split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from discovery.home import Home
    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part

_GB = 1e9


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What to fetch, and for which nodes; without nodes for this machine, without a split all of it."""

    model: str
    revision: str
    nodes: tuple[str, ...]
    split: tuple[int, ...] | None
    full: bool
    """Each node keeps a whole copy, the tokenizer included."""
    dry_run: bool
    """Only say what would come from where."""


def run_fetch(options: FetchOptions) -> int:
    """Fetch, saying how far it is; interrupting it pauses."""
    if options.full and options.split:
        raise PomonaError("A full copy has every layer; leave out either --full or --split.")
    if options.dry_run and not options.nodes:
        raise PomonaError("What would come from where is said of nodes: name them with --node.")
    home = open_home(data_folder())
    return asyncio.run(_fetch_on_nodes(home, options) if options.nodes else _fetch_here(home, options))


async def _fetch_here(home: Home, options: FetchOptions) -> int:
    in_reach = await nodes_in_reach(home)
    found = await find_model(home, options.model, options.revision, in_reach)
    if found.folder is not None:
        _out(f"{found.manifest.name} is on this machine already: {found.folder} is used where it is.")
        return 0
    manifest = found.manifest
    model = own_library(home).store.open(manifest)
    names = stage_names(model.parts(), options.split)[0] if options.split else sorted(model.parts())
    async with AsyncExitStack() as stack:
        sources = await sources_of(stack, home, manifest, in_reach)
        await Transfer(model, names, sources, _Telling().here, with_text=True).run()
    _out(f"{manifest.name} is complete in {model.folder}.")
    return 0


async def _fetch_on_nodes(home: Home, options: FetchOptions) -> int:
    in_reach = await nodes_in_reach(home, always=True)
    nodes = named_nodes(in_reach, options.nodes)
    found = await find_model(home, options.model, options.revision, in_reach)
    parts = model_parts(found.manifest)
    ids = [node.resources.node_id for node in nodes]
    if options.full:
        shares = [sorted(parts)] * len(nodes)
    else:
        shares = stage_names(parts, options.split or even_split(layer_count(parts), len(nodes)))
    if len(shares) != len(nodes):
        raise PomonaError(f"The split is for {len(shares)} nodes, and {len(nodes)} are named.")
    wanted = dict(zip(ids, shares, strict=True))
    fetch = NodesFetch(home, found, parts, wanted, in_reach, _Telling().on_node, with_text=options.full)
    if options.dry_run:
        _out("\n".join(await fetch.preview()) or "Every node has what it needs.")
        return 0
    folders = await fetch.run()
    for node in nodes:
        what = "all of it" if options.full else "its layers"
        _out(f"{node.resources.name} has {what} in {folders.get(node.resources.node_id, 'no folder')}.")
    return 0


def layer_count(parts: Mapping[str, Part]) -> int:
    """The layers of a model of which these are all parts."""
    return sum(name.startswith("layer-") for name in parts)


def stage_names(parts: Mapping[str, Part], split: Sequence[int]) -> list[list[str]]:
    """The parts of each stage of a split. Raises :class:`PomonaError` for a split that is not the model's."""
    if sum(split) != layer_count(parts) or min(split) < 0:
        raise PomonaError(f"The model has {layer_count(parts)} layers, and the split {sum(split)}; make them equal.")
    edges = accumulate(split, initial=0)
    return [stage_parts(parts, first, end) if end > first else [] for first, end in pairwise(edges)]


class _Telling:
    """Says how far a fetch is on standard error, at each twentieth of the way."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def here(self, progress: Progress) -> None:
        """Of this machine."""
        self._tell(
            "this machine", progress.done_bytes, progress.total_bytes, progress.bytes_per_second, progress.seconds_left
        )

    def on_node(self, node: KnownNode, words: str, progress: FetchProgress | None) -> None:
        """Of a node."""
        if words:
            sys.stderr.write(f"{words}\n")
        if progress is not None:
            self._tell(
                node.resources.name,
                progress.done_bytes,
                progress.total_bytes,
                progress.bytes_per_second,
                progress.seconds_left,
            )

    def _tell(self, name: str, done: int, total: int, rate: float, left: float | None) -> None:
        share = done / max(total, 1)
        if share - self._told.get(name, -1.0) < (0.05 if done < total else 0.001):
            return
        self._told[name] = share
        rest = f", {left:.0f} s left" if left else ""
        sys.stderr.write(f"{name}: {done / _GB:.2f} of {total / _GB:.2f} GB, {rate / 1e6:.0f} MB/s{rest}\n")


def _out(text: str) -> None:
    sys.stdout.write(f"{text}\n")
