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
    lists: dict[str, dict[int, Tensors]] = {}
    owner: dict[str, str] = {}
    for name, count in tensor_bytes.items():
        member = _LIST_MEMBER.match(name)
        if member and not _is_left_out(member[1]):
            owner[name] = member[1]
            lists.setdefault(member[1], {}).setdefault(int(member[2]), {})[name[member.end() :]] = count
    for path in [path for path in lists if path.endswith(f"{_CONTINUED_LIST}.")]:
        _continue_list(lists, owner, path)
    decoder = _decoder_list(lists, layer_count)
    if decoder is None:
        return None
    outside = {name: count for name, count in tensor_bytes.items() if name not in owner or owner[name] != decoder}
    return [lists[decoder].get(index, {}) for index in range(layer_count)], outside


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


def _continue_list(lists: dict[str, dict[int, Tensors]], owner: dict[str, str], path: str) -> None:
    before = path.removesuffix(f"{_CONTINUED_LIST}.") + "layers."
    if before in lists:
        offset = max(lists[before]) + 1
        lists[before] |= {offset + index: tensors for index, tensors in lists.pop(path).items()}
        owner.update({name: before for name, its_list in owner.items() if its_list == path})


def _decoder_list(lists: Mapping[str, Mapping[int, Tensors]], layer_count: int) -> str | None:
    def rank(path: str) -> tuple[bool, bool, int]:
        usual = path.rstrip(".").rpartition(".")[2] in _LAYER_LISTS
        whole = all(index in lists[path] for index in range(layer_count))
        return usual, whole, sum(sum(tensors.values()) for tensors in lists[path].values())

    best = max(lists, key=rank, default=None)
    return best if best is not None and any(rank(best)[:2]) else None
