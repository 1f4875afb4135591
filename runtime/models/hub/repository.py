"""What a repository on a hub is made of: its manifest, read by byte ranges of kilobytes."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from runtime.errors import PomonaError
from runtime.models.config import CONFIG_NAME
from runtime.models.fetch.source import SourceError
from runtime.models.manifest import Manifest, SmallFile, WeightFile, check_manifest, small_names
from runtime.models.safetensors_header import LENGTH_BYTES, header_length
from runtime.models.weight_files import INDEX_NAME, WEIGHTS_PATTERN, check_index, parse_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.models.hub.client import HubClient

_REPOSITORY = re.compile(r"[\w-][\w.-]{0,95}(?:/[\w-][\w.-]{0,95})?", re.ASCII)
_AT_ONCE = 8
_TREE_LIMIT = 20_000
_MAX_INDEX_BYTES = 64 << 20

_Text = Annotated[str, msgspec.Meta(max_length=400)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class _Lfs(msgspec.Struct, frozen=True):
    oid: _Text
    size: _Size


class _Entry(msgspec.Struct, frozen=True):
    """A file or folder as ``/api/models/…/tree`` lists it."""

    type: _Text
    path: _Text
    oid: _Text = ""
    size: _Size = 0
    lfs: _Lfs | None = None


class FoundModel(msgspec.Struct, frozen=True):
    """One answer of a search."""

    id: _Text
    downloads: int = 0
    likes: int = 0
    gated: bool | str = False


async def hub_manifest(hub: HubClient, repository: str, revision: str = "main") -> Manifest:
    """The manifest of ``repository`` at the commit that ``revision`` names now. Raises :class:`PomonaError`."""
    _check_name(repository)
    commit = await _commit(hub, repository, revision)
    entries = {entry.path: entry for entry in await _tree(hub, repository, commit) if entry.type == "file"}
    name = repository.rpartition("/")[2]
    if CONFIG_NAME not in entries:
        raise PomonaError(f"{repository} is no language model: it has no {CONFIG_NAME}.")
    weight_map = await _index(hub, repository, commit, entries)
    names = sorted(set(weight_map.values())) if weight_map else fnmatch.filter(sorted(entries), WEIGHTS_PATTERN)
    if lost := [file for file in names if file not in entries]:
        raise PomonaError(
            f"The index of {repository} names files that the repository does not have ({', '.join(lost[:3])}): "
            "its author has to complete it."
        )
    if not names:
        raise PomonaError(
            f"{repository} has no weights in safetensors format: choose a version of it in MLX or safetensors format."
        )
    limit = asyncio.Semaphore(_AT_ONCE)
    weights = await asyncio.gather(*(_weight_file(hub, repository, commit, entries[file], limit) for file in names))
    config = await _read(hub, repository, commit, entries[CONFIG_NAME])
    small = tuple(_small(entries[file]) for file in small_names(entries))
    manifest = Manifest(name, repository, commit, config.decode(errors="replace"), tuple(weights), small)
    check_manifest(manifest, "The hub")
    if weight_map:
        files = dict(zip(names, manifest.file_tensors(), strict=True))
        check_index(weight_map, files, repository)
    return manifest


async def search_hub(hub: HubClient, words: str, limit: int = 20) -> list[FoundModel]:
    """Models in MLX format on the hub, the most downloaded first."""
    found, _more = await hub.retried(
        "an answer to the search",
        partial(hub.get_json, "/api/models", search=words, filter="mlx", sort="downloads", direction=-1, limit=limit),
    )
    models: list[FoundModel] = _convert(found, list[FoundModel])
    return models


async def _commit(hub: HubClient, repository: str, revision: str) -> str:
    path = f"/api/models/{repository}/revision/{revision}"
    answer, _more = await hub.retried(repository, partial(hub.get_json, path))
    commit = answer.get("sha") if isinstance(answer, dict) else None
    if not isinstance(commit, str) or len(commit) != 40 or not set(commit) <= set("0123456789abcdef"):
        raise SourceError(f"The hub does not say which revision of {repository} it has.")
    return commit


async def _tree(hub: HubClient, repository: str, commit: str) -> list[_Entry]:
    path = f"/api/models/{repository}/tree/{commit}"
    answer, more = await hub.retried(f"the files of {repository}", partial(hub.get_json, path))
    entries: list[_Entry] = _convert(answer, list[_Entry])
    while more is not None and len(entries) < _TREE_LIMIT:
        answer, more = await hub.retried(f"the files of {repository}", partial(hub.get_json_at, more))
        entries += _convert(answer, list[_Entry])
    return entries


async def _index(hub: HubClient, repository: str, commit: str, entries: Mapping[str, _Entry]) -> dict[str, str]:
    entry = entries.get(INDEX_NAME)
    if entry is None:
        return {}
    if entry.size > _MAX_INDEX_BYTES:
        raise PomonaError(f"{INDEX_NAME} of {repository} is too large to be one.")
    return parse_index(await _read(hub, repository, commit, entry), repository)


async def _read(hub: HubClient, repository: str, commit: str, entry: _Entry) -> bytes:
    size = entry.lfs.size if entry.lfs else entry.size
    data: bytes = await hub.retried(
        f"{entry.path} of {repository}", partial(hub.read_small, repository, commit, entry.path, size)
    )
    return data


async def _weight_file(
    hub: HubClient, repository: str, commit: str, entry: _Entry, limit: asyncio.Semaphore
) -> WeightFile:
    size = entry.lfs.size if entry.lfs else entry.size
    etag = entry.lfs.oid if entry.lfs else entry.oid

    async def read() -> WeightFile:
        where = await hub.locate(repository, commit, entry.path)
        check_etag(where.etag, etag, entry.path)
        prefix, _etag = await hub.read_range(where, 0, LENGTH_BYTES, entry.path)
        end = LENGTH_BYTES + header_length(prefix, size, entry.path)
        text, _etag = await hub.read_range(where, LENGTH_BYTES, end, entry.path)
        return WeightFile(entry.path, size, etag, text.decode(errors="replace"))

    async with limit:
        found: WeightFile = await hub.retried(f"the header of {entry.path}", read)
    return found


def check_etag(found: str, wanted: str, name: str) -> None:
    """Raise :class:`SourceError` if the hub has other contents under this name than the manifest was made from."""
    if wanted and found != wanted:
        raise SourceError(f"The hub has another {name} now than the manifest says; fetch the model again.")


def _small(entry: _Entry) -> SmallFile:
    if entry.lfs is not None:
        return SmallFile(entry.path, entry.lfs.size, f"sha256:{entry.lfs.oid}")
    return SmallFile(entry.path, entry.size, f"git:{entry.oid}")


def _convert(answer: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise SourceError(f"The hub answers in a way that cannot be understood ({error}).") from error


def _check_name(repository: str) -> None:
    if not _REPOSITORY.fullmatch(repository):
        raise PomonaError(f"{repository!r} is no name of a model on the hub; write it as owner/name.")
