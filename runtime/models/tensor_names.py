"""Which part of a model a tensor belongs to, by its name. Pure functions.

Architectures name their parts in many ways (``model.layers.3.…``, ``transformer.h.3.…``, ``backbone.layers.3.…``,
``language_model.model.layers.3.…``), so the list of decoder layers is found by what it is: a numbered list outside of
vision and audio towers, by preference one with a usual name, then one with all of the layers, then the largest.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = Literal["embedding", "beside embedding", "head", "other", "left out"]
Tensors = dict[str, int]
"""Bytes by name."""

_LIST_MEMBER = re.compile(r"((?:[^.\d][^.]*\.)*?)(\d{1,5})\.")
_LAYER_LISTS = {"layers", "layer", "h", "blocks", "block"}
_CONTINUED_LIST = "kv_reuse_layers"  # afm7's last layers, which have no keys and values of their own

_LEFT_OUT = re.compile(
    r"vision|visual|audio|speech|image|multi_?modal|mm_projector|patch_merge|(?:^|\.)(?:mtp|nextn)", re.IGNORECASE
)
_EMBEDDINGS = {
    "embed_tokens",
    "embed_in",
    "embed",
    "embd",
    "embedding",
    "embeddings",
    "ngram_embeddings",
    "tok_embeddings",
    "token_embeddings",
    "word_embeddings",
    "wte",
}
_BESIDE_EMBEDDING = {
    "altup_projections",  # Gemma 3n
    "embed_tokens_per_layer",  # Gemma 3n and the small Gemma 4, as the next two
    "per_layer_model_projection",
    "per_layer_projection_norm",
    "wpe",  # positions of the GPTs
}
_HEADS = {"lm_head", "output", "embed_out", "head", "ff_out"}


def layer_tensors(tensor_bytes: Mapping[str, int], layer_count: int) -> tuple[list[Tensors], Tensors] | None:
    """The tensors of each decoder layer, by their names inside it, and those outside; None if there are no layers.

    Layers beyond ``layer_count`` (multi-token prediction) are in neither part. A layer without tensors is empty.
    """
    places = layer_places(tensor_bytes, layer_count)
    if places is None:
        return None
    layers: list[Tensors] = [{} for _ in range(layer_count)]
    for name, (layer, inside) in places.items():
        if layer < layer_count:
            layers[layer][inside] = tensor_bytes[name]
    return layers, {name: count for name, count in tensor_bytes.items() if name not in places}


def layer_places(tensor_bytes: Mapping[str, int], layer_count: int) -> dict[str, tuple[int, str]] | None:
    """Of every tensor in the list of decoder layers, its layer and its name inside it; None if there is no such list.

    Layers of multi-token prediction are among them, as ``layer_count`` and beyond.
    """
    lists: dict[str, dict[int, int]] = {}
    owner: dict[str, tuple[str, int, str]] = {}
    match = _LIST_MEMBER.match
    for name, count in tensor_bytes.items():
        if (member := match(name)) is None:
            continue
        path, number = member.groups()
        its = lists.get(path)
        if its is None:
            if _is_left_out(path):
                continue
            its = lists[path] = {}
        index = int(number)
        owner[name] = path, index, name[member.end() :]
        its[index] = its.get(index, 0) + count
    continued = _continued(lists)
    decoder = _decoder_list(lists, layer_count)
    if decoder is None:
        return None
    offsets = {decoder: 0} | {path: offset for path, offset in continued.items() if _before(path) == decoder}
    return {name: (index + offsets[path], inside) for name, (path, index, inside) in owner.items() if path in offsets}


def part_of(name: str) -> Part:
    """Where a tensor outside of the decoder layers belongs."""
    words = set(name.split("."))
    if _is_left_out(name):
        return "left out"
    if words & _BESIDE_EMBEDDING:
        return "beside embedding"
    if words & _EMBEDDINGS:
        return "embedding"
    return "head" if words & _HEADS else "other"


@lru_cache(maxsize=1024)  # a model of many experts repeats its few lists a hundred thousand times
def _is_left_out(path: str) -> bool:
    return _LEFT_OUT.search(path) is not None


def _before(path: str) -> str:
    return path.removesuffix(f"{_CONTINUED_LIST}.") + "layers."


def _continued(lists: dict[str, dict[int, int]]) -> dict[str, int]:
    """Lists that go on where another ends, each with its first index there; they become part of that one."""
    offsets: dict[str, int] = {}
    for path in [path for path in lists if path.endswith(f"{_CONTINUED_LIST}.")]:
        if (before := _before(path)) in lists:
            offsets[path] = max(lists[before]) + 1
            lists[before] |= {offsets[path] + index: count for index, count in lists.pop(path).items()}
    return offsets


def _decoder_list(lists: Mapping[str, Mapping[int, int]], layer_count: int) -> str | None:
    def rank(path: str) -> tuple[bool, bool, int]:
        usual = path.rstrip(".").rpartition(".")[2] in _LAYER_LISTS
        whole = all(index in lists[path] for index in range(layer_count))
        return usual, whole, sum(lists[path].values())

    best = max(lists, key=rank, default=None)
    return best if best is not None and any(rank(best)[:2]) else None
