"""``pomona models …``: what a model is made of, deleting it, favourites, the hub."""

from __future__ import annotations

import asyncio
import sys
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.folder import data_folder, open_home
from runtime.agent.models.messages import ModelOrder
from runtime.cli.model_nodes import named_nodes, nodes_in_reach
from runtime.cluster.model_desk import ModelDesk
from runtime.cluster.model_names import find_model
from runtime.errors import PomonaError
from runtime.models.cache_layout import LayerCache, read_caches
from runtime.models.half_scales import agree
from runtime.models.layout import ModelLayout, manifest_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.models.manifest import Manifest

USUAL = "usual"
_GB = 1e9
_NEUTRAL_DTYPES = {"U32", "U8", "I32"}


class LayoutReport(msgspec.Struct, frozen=True):
    """What ``models layout --json`` prints."""

    layout: ModelLayout
    caches: tuple[LayerCache, ...]


def run_layout(model: str, revision: str, *, as_json: bool) -> int:
    """Say what a model is made of, whether it is here or on the hub."""
    home = open_home(data_folder())
    manifest = asyncio.run(_find(home, model, revision))
    layout = manifest_layout(manifest)
    try:
        caches = read_caches(manifest.settings, weight_dtype(manifest)).layers
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


async def _find(home: Home, model: str, revision: str) -> Manifest:
    return (await find_model(home, model, revision, await nodes_in_reach(home))).manifest


def run_remove(model: str, revision: str, nodes: Sequence[str]) -> int:
    """Delete a model from Pomona's store, on this machine or on nodes. Folders that are not Pomona's stay."""
    if nodes:
        return asyncio.run(_remove_on(model, revision, nodes))
    freed = asyncio.run(ModelDesk(data_folder()).remove(ModelOrder("", model, revision)))
    _out(f"{model} is deleted: {freed / _GB:.2f} GB are free again.")
    return 0


async def _remove_on(model: str, revision: str, names: Sequence[str]) -> int:
    desk = ModelDesk(data_folder())
    for node in named_nodes(await nodes_in_reach(open_home(data_folder()), always=True), names):
        freed = await desk.remove(ModelOrder("", model, revision), node)
        _out(f"{model} is deleted on {node.resources.name}: {freed / _GB:.2f} GB are free again.")
    return 0


def run_favourite(model: str, *, remove: bool) -> int:
    """Mark a model, or mark it no more."""
    ModelDesk(data_folder()).mark(model, on=not remove)
    _out(f"{model} is no favourite any more." if remove else f"{model} is a favourite.")
    return 0


def run_convert(*, on: bool) -> int:
    """Have this node keep quantized models with float32 scales from now on, or as they are."""
    agree(data_folder(), on=on)
    _out(
        "What this node fetches from now on is kept with float32 scales: a tenth larger, and faster on its CPU."
        if on
        else "This node keeps models as they are."
    )
    return 0


def run_search(words: str) -> int:
    """Models in MLX format on the hub."""
    found = asyncio.run(ModelDesk(data_folder()).search(words))
    lines = [f"{each.id}  {each.downloads} downloads{'  gated' if each.gated else ''}" for each in found]
    _out("\n".join(lines) or "The hub has none.")
    return 0


def run_token(token: str) -> int:
    """Keep the hub's token, or forget it if it is empty."""
    ModelDesk(data_folder()).keep_token(token)
    _out("The token is kept for you alone." if token.strip() else "The token is forgotten.")
    return 0


def run_folder(folder: str) -> int:
    """Say where models are kept; with a folder, or ``usual``, keep those that come from now on there."""
    desk = ModelDesk(data_folder())
    if folder:
        desk.choose_folder(None if folder == USUAL else Path(folder))
    now = desk.keeping()
    _out(f"Models are kept in {now.folder} ({now.disk_free_bytes / _GB:.1f} GB free).")
    return 0


def weight_dtype(manifest: Manifest) -> str:
    """The type that most of the weights are computed in: that of scales and norms where the rest is packed."""
    counts: dict[str, int] = {}
    for its in manifest.file_tensors():
        for tensor in its.values():
            if tensor.dtype not in _NEUTRAL_DTYPES:
                counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.byte_count
    return max(counts, key=lambda dtype: counts[dtype], default="BF16")


def _out(text: str) -> None:
    sys.stdout.write(f"{text}\n")
