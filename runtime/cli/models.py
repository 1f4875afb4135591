"""``pomona models``: what is here, what a model is made of, fetching it, deleting it, and the hub."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.folder import data_folder, open_home
from runtime.agent.models.inventory import held_models
from runtime.agent.models.library import Library, hub_cache_folder
from runtime.agent.models.messages import HeldModel, ModelOrder
from runtime.cli.nodes import look_around
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.models import ModelProvider
from runtime.errors import PomonaError
from runtime.models.cache_layout import LayerCache, read_caches
from runtime.models.demo import demo_model_folder
from runtime.models.fetch.transfer import Progress, Transfer
from runtime.models.hub.client import HubClient, keep_token, read_token
from runtime.models.hub.repository import hub_manifest, search_hub
from runtime.models.hub.source import HubSource
from runtime.models.layout import ModelLayout, manifest_layout
from runtime.models.manifest import Manifest, manifest_of
from runtime.models.parts import model_parts, stage_parts
from runtime.models.store import ModelStore
from runtime.planning.plan import even_split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part

_LOOK_SECONDS = 4.0
_GB = 1e9
_NEUTRAL_DTYPES = {"U32", "U8", "I32"}


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What to fetch, and for which nodes; without nodes for this machine, without a split all of it."""

    model: str
    revision: str
    nodes: tuple[str, ...]
    split: tuple[int, ...] | None


class LayoutReport(msgspec.Struct, frozen=True):
    """What ``models layout --json`` prints."""

    layout: ModelLayout
    caches: tuple[LayerCache, ...]


def own_store() -> ModelStore:
    """The store of this machine's agent."""
    return ModelStore(data_folder() / "models")


def run_models(*, as_json: bool) -> int:
    """List the models on this machine."""
    models = held_models(Library(own_store(), hub_cache_folder()))
    if as_json:
        _out(msgspec.json.encode(models).decode())
    elif models:
        _out("\n".join(map(describe, models)))
    else:
        sys.stderr.write("There is no model on this machine yet; `pomona models fetch OWNER/NAME` gets one.\n")
    return 0


def describe(model: HeldModel) -> str:
    """One line for a person."""
    layers = f"{model.layers_held} of {model.layer_count} layers"
    ways = ["any split" if not model.pipeline_refusal else "no split in stages"]
    ways.append(f"tensor over {', '.join(map(str, model.tensor_sizes))}" if model.tensor_sizes else "no tensor mode")
    place = "" if model.is_ours else ", in the Hugging Face cache"
    return (
        f"{model.repository or model.name}: {layers}, {model.disk_bytes / _GB:.2f} GB, {model.quantization}, "
        f"context {model.context_tokens}, {', '.join(ways)}{place}"
    )


def run_layout(model: str, revision: str, *, as_json: bool) -> int:
    """Say what a model is made of, whether it is here or on the hub."""
    manifest, _folder = asyncio.run(find_manifest(model, revision))
    layout = manifest_layout(manifest)
    try:
        caches = read_caches(manifest.settings, weight_dtype(manifest))
    except PomonaError as error:  # the rest is known all the same
        sys.stderr.write(f"pomona: {error}\n")
        caches = ()
    if as_json:
        _out(msgspec.json.encode(LayoutReport(layout, caches)).decode())
        return 0
    lines = [
        f"{layout.name} ({layout.model_type}): {len(layout.layer_bytes)} layers, {layout.weight_bytes / _GB:.3f} GB",
        f"embedding {layout.embedding_bytes / 1e6:.1f} MB{' (tied to the head)' if layout.tied_embedding else ''}",
        f"norm and head {layout.head_bytes / 1e6:.1f} MB",
    ]
    shown = caches or repeat(LayerCache("none"))
    for index, (size, active, cache) in enumerate(
        zip(layout.layer_bytes, layout.layer_active_bytes, shown, strict=False)
    ):
        words = f"layer {index:>3}  {size / 1e6:>9.1f} MB"
        words += f", {active / 1e6:.1f} MB a token" if active != size else ""
        words += f"  {cache.kind} cache {cache.bytes_per_token} B a token" if cache.bytes_per_token else ""
        words += f", window {cache.window_tokens}" if cache.window_tokens else ""
        words += f", state {cache.state_bytes / 1e6:.2f} MB" if cache.state_bytes else ""
        lines.append(words)
    _out("\n".join(lines))
    return 0


def run_fetch(options: FetchOptions) -> int:
    """Fetch, saying how far it is; interrupting it pauses."""
    if options.nodes:
        return asyncio.run(_fetch_on_nodes(options))
    return asyncio.run(_fetch_here(options))


def run_remove(model: str, revision: str) -> int:
    """Delete a model from this machine's store. Snapshots in the Hugging Face cache are not Pomona's to delete."""
    stored = own_store().find(model, revision)
    if stored is None:
        raise PomonaError(f"{model} is not in Pomona's store on this machine; `pomona models` lists what is.")
    freed = own_store().remove(stored)
    _out(f"{model} is deleted: {freed / _GB:.2f} GB are free again.")
    return 0


def run_search(words: str) -> int:
    """Models in MLX format on the hub."""

    async def search() -> list[str]:
        async with HubClient(token=read_token(data_folder())) as hub:
            found = await search_hub(hub, words)
        return [f"{each.id}  {each.downloads} downloads{'  gated' if each.gated else ''}" for each in found]

    _out("\n".join(asyncio.run(search())) or "The hub has none.")
    return 0


def run_token(token: str) -> int:
    """Keep the hub's token, or forget it if it is empty."""
    keep_token(data_folder(), token.strip())
    _out("The token is kept for you alone." if token.strip() else "The token is forgotten.")
    return 0


async def find_manifest(model: str, revision: str = "") -> tuple[Manifest, Path | None]:
    """What a person calls a model: ``demo``, a folder, or a name in the store, the cache or on the hub.

    Also the folder of a full copy that is not Pomona's, if it is one. Raises :class:`PomonaError`.
    """
    if model == "demo" or await asyncio.to_thread(Path(model).is_dir):
        folder = await asyncio.to_thread(lambda: demo_model_folder() if model == "demo" else Path(model).absolute())
        return await asyncio.to_thread(manifest_of, folder), folder
    copies = await asyncio.to_thread(Library(own_store(), hub_cache_folder()).copies, model, revision)
    if copies:
        return copies[0].manifest, None if copies[0].stored else copies[0].folder
    async with HubClient(token=read_token(data_folder())) as hub:
        return await hub_manifest(hub, model, revision or "main"), None


def weight_dtype(manifest: Manifest) -> str:
    """The type that most of the weights are computed in: that of scales and norms where the rest is packed."""
    counts: dict[str, int] = {}
    for its in manifest.file_tensors():
        for tensor in its.values():
            if tensor.dtype not in _NEUTRAL_DTYPES:
                counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.byte_count
    return max(counts, key=lambda dtype: counts[dtype], default="BF16")


async def _fetch_here(options: FetchOptions) -> int:
    manifest, folder = await find_manifest(options.model, options.revision)
    if folder is not None:
        _out(f"{manifest.name} is on this machine already: {folder} is used where it is.")
        return 0
    if not manifest.repository:
        raise PomonaError(f"{manifest.name} is on no hub.")
    model = own_store().open(manifest)
    names = _stage_names(model.parts(), options.split)[0] if options.split else sorted(model.parts())
    async with HubClient(token=read_token(data_folder())) as hub:
        telling = _Telling()
        transfer = Transfer(model, names, [HubSource(hub, manifest)], telling.here, with_text=True)
        await transfer.run()
    _out(f"{manifest.name} is complete in {model.folder}.")
    return 0


async def _fetch_on_nodes(options: FetchOptions) -> int:
    manifest, folder = await find_manifest(options.model, options.revision)
    parts = model_parts(manifest)
    home = open_home(data_folder())
    usable, _unpaired = await look_around(home, _LOOK_SECONDS, only_here=False)
    found = {node.resources.name: node for node in usable}
    if lost := [name for name in options.nodes if name not in found]:
        raise PomonaError(f"{lost[0]} is not in reach; `pomona nodes` lists those that are.")
    nodes = reachable([found[name] for name in options.nodes])
    shares = _stage_names(parts, options.split or even_split(_layer_count(parts), len(nodes)))
    if len(shares) != len(nodes):
        raise PomonaError(f"The split is for {len(shares)} nodes, and {len(nodes)} are named.")
    wanted = {node.resources.node_id: names for node, names in zip(nodes, shares, strict=True)}
    await introduce(home, nodes)
    order = ModelOrder(manifest.name, manifest.repository, manifest.revision, str(folder or ""))
    folders = await ModelProvider(home, order, parts, _Telling().on_node).provide(nodes, wanted)
    for node in nodes:
        _out(f"{node.resources.name} has its layers in {folders.get(node.resources.node_id, 'no folder')}.")
    return 0


def _layer_count(parts: dict[str, Part]) -> int:
    return sum(name.startswith("layer-") for name in parts)


def _stage_names(parts: dict[str, Part], split: Sequence[int]) -> list[list[str]]:
    if sum(split) != _layer_count(parts) or min(split) < 0:
        raise PomonaError(f"The model has {_layer_count(parts)} layers, and the split {sum(split)}; make them equal.")
    edges = accumulate(split, initial=0)
    return [stage_parts(parts, first, end) if end > first else [] for first, end in pairwise(edges)]


class _Telling:
    """Says how far a fetch is, at most twice a second, on standard error."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def here(self, progress: Progress) -> None:
        """Of this machine."""
        self._tell(
            "this Mac", progress.done_bytes, progress.total_bytes, progress.bytes_per_second, progress.seconds_left
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
        if share - self._told.get(name, -1.0) < 0.05 and done < total:
            return
        self._told[name] = share
        rest = f", {left:.0f} s left" if left else ""
        sys.stderr.write(f"{name}: {done / _GB:.2f} of {total / _GB:.2f} GB, {rate / 1e6:.0f} MB/s{rest}\n")


def _out(text: str) -> None:
    sys.stdout.write(f"{text}\n")
