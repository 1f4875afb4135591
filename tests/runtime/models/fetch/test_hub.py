"""Fetching from a hub: only the wanted bytes, resumed, and every fault named."""

from __future__ import annotations

import asyncio
import json
import resource
import stat
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from runtime.errors import PomonaError
from runtime.models import parts as parts_module
from runtime.models.fetch import transfer as transfer_module
from runtime.models.fetch.transfer import Transfer
from runtime.models.hub.client import HubClient, keep_token, read_token
from runtime.models.hub.repository import hub_manifest, search_hub
from runtime.models.hub.source import HubSource
from runtime.models.layout import manifest_layout, read_layout
from runtime.models.manifest import folder_manifest
from runtime.models.part_files import FullFolder, SplitFolder
from runtime.models.parts import stage_parts
from runtime.models.store import ModelStore
from tests.hub import COMMIT, LocalHub, write_small_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.models.fetch.transfer import Progress
    from runtime.models.store import StoredModel

REPOSITORY = "someone/Small-Llama"
PAUSE = 0.01


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_small_model(tmp_path / "origin")


@pytest.fixture
def hub(folder) -> Iterator[LocalHub]:
    with LocalHub({REPOSITORY: folder}) as hub:
        yield hub


@pytest.fixture
def small_chunks(monkeypatch) -> None:
    """Chunks of 16 KiB, so that a small model has many."""
    monkeypatch.setattr(parts_module, "CHUNK_BYTES", 16 << 10)


async def fetch(
    hub: LocalHub, root: Path, first: int, end: int, token: str | None = None, on_progress=None
) -> StoredModel:
    async with HubClient(hub.endpoint, token, PAUSE) as client:
        manifest = await hub_manifest(client, REPOSITORY)
        model = ModelStore(root).open(manifest)
        names = stage_parts(model.parts(), first, end)
        await Transfer(model, names, [HubSource(client, manifest)], on_progress).run()
    return model


def assert_right(model: StoredModel, folder: Path, first: int, end: int) -> None:
    """Every byte of the parts is that of the original."""
    original, parts = FullFolder(folder, model.manifest), model.parts()
    names = stage_parts(parts, first, end)
    assert set(names) <= set(model.held(parts.values()))
    for name in names:
        span = (0, parts[name].byte_count)
        assert SplitFolder(model.folder).read(parts[name], *span) == original.read(parts[name], *span)


async def test_a_hub_that_only_a_proxy_reaches(hub, folder, monkeypatch):
    """This one passes nothing on: it is the hub. What counts is who is asked for a host that nobody can find."""
    monkeypatch.setenv("HTTP_PROXY", hub.endpoint)
    monkeypatch.setenv("NO_PROXY", "")
    async with HubClient("http://hub.invalid") as client:
        about, _ = await client.get_json(f"/api/models/{REPOSITORY}/revision/main")
    assert about["sha"] == COMMIT


async def test_the_hubs_manifest_is_that_of_the_folder(hub, folder):
    async with HubClient(hub.endpoint) as client:
        manifest = await hub_manifest(client, REPOSITORY)
    assert (manifest.repository, manifest.revision) == (REPOSITORY, COMMIT)
    local = folder_manifest(folder)
    assert [file.header for file in manifest.weight_files] == [file.header for file in local.weight_files]
    assert {file.name for file in manifest.small_files} == {"config.json", "tokenizer.json"}
    assert manifest_layout(manifest).layer_bytes == read_layout(folder).layer_bytes
    assert hub.content_bytes() < 20_000


async def test_three_nodes_fetch_only_their_bytes(hub, folder, tmp_path):
    for first, end in ((0, 1), (1, 5), (5, 6)):
        before = hub.content_bytes()
        model = await fetch(hub, tmp_path / f"node{first}", first, end)
        assert_right(model, folder, first, end)
        tensors = sum(model.parts()[name].tensor_bytes for name in stage_parts(model.parts(), first, end))
        headers = 2 * sum(len(file.header) for file in model.manifest.weight_files)
        assert tensors <= hub.content_bytes() - before <= tensors + headers + 100
        assert not (model.folder / "tokenizer.json").exists()
        assert not (model.folder / "modeling_evil.py").exists()
        layout = read_layout(model.folder)
        assert layout.layer_bytes == read_layout(folder).layer_bytes


async def test_a_moved_boundary_fetches_the_moved_layers(hub, folder, tmp_path):
    await fetch(hub, tmp_path / "node", 1, 3)
    before = hub.content_bytes()
    model = await fetch(hub, tmp_path / "node", 1, 5)
    parts = model.parts()
    moved = sum(parts[f"layer-{layer:05}"].tensor_bytes for layer in (3, 4))
    assert moved <= hub.content_bytes() - before <= moved + 20_000
    assert_right(model, folder, 1, 5)


async def test_a_cancelled_fetch_goes_on_where_it_stopped(hub, folder, tmp_path, small_chunks):
    class Enough(Exception):
        pass

    stopped: list[int] = []

    def stop(progress: Progress) -> None:
        if progress.done_bytes > progress.total_bytes / 2 and not stopped:
            stopped.append(progress.done_bytes)
            raise Enough

    with pytest.RaisesGroup(Enough):
        await fetch(hub, tmp_path / "node", 0, 6, on_progress=stop)
    before = hub.content_bytes()
    model = await fetch(hub, tmp_path / "node", 0, 6)
    assert hub.content_bytes() - before < 0.6 * sum(part.byte_count for part in model.parts().values())
    assert_right(model, folder, 0, 6)


async def test_what_a_crash_left_wrong_is_fetched_again(hub, folder, tmp_path, small_chunks):
    model = await fetch(hub, tmp_path / "node", 0, 6)
    part = model.parts()["layer-00003"]
    data = bytearray((model.folder / part.file_name).read_bytes())
    data[20_000] ^= 1  # in the second chunk
    partial = model.partial(part)
    hashes = model.chunk_hashes(part)
    model.drop(part)
    partial.write_bytes(data)
    lines = [f"{index} {digest.hex()}" for index, digest in enumerate(hashes)]
    partial.with_name(f"{partial.name}.journal").write_text("\n".join([*lines[:3], "nonsense", "9999 00"]))
    before = hub.content_bytes()
    model = await fetch(hub, tmp_path / "node", 0, 6)
    assert hub.content_bytes() - before < part.byte_count - (32 << 10) + 20_000
    assert_right(model, folder, 0, 6)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_hub_is_asked_again(hub, folder, tmp_path, status):
    left = [3]

    async def busy(_request: web.Request) -> web.StreamResponse | None:
        left[0] -= 1
        return web.Response(status=status, headers={"Retry-After": "0"}) if left[0] >= 0 else None

    hub.fault = busy
    assert_right(await fetch(hub, tmp_path / "node", 0, 6), folder, 0, 6)


async def test_a_hub_that_stays_down_is_named_and_nothing_half_is_there(hub, tmp_path):
    model = await fetch(hub, tmp_path / "node", 0, 1)

    async def down(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=500) if request.path.startswith("/content/") else None

    async with HubClient(hub.endpoint, pause_seconds=PAUSE) as client:
        hub.fault = down
        source = HubSource(client, model.manifest)
        with pytest.raises(PomonaError, match=r"layer-0000\d of .* could not be fetched: The hub 127.0.0.1 did not"):
            await Transfer(model, ["layer-00001", "layer-00002"], [source]).run()
    assert model.held(model.parts().values()) == ["embedding", "layer-00000"]


async def test_a_line_that_breaks_is_taken_up_again(hub, folder, tmp_path):
    left = [4]

    async def cut(request: web.Request) -> web.StreamResponse | None:
        left[0] -= 1
        if left[0] < 0 or not request.path.startswith("/content/"):
            return None
        size = (request.http_range.stop or 0) - (request.http_range.start or 0)
        response = web.StreamResponse(status=206, headers={"Content-Length": str(size)})
        await response.prepare(request)
        await response.write(bytes(size // 2))
        assert request.transport is not None
        request.transport.close()
        return response

    hub.fault = cut
    assert_right(await fetch(hub, tmp_path / "node", 0, 6), folder, 0, 6)


async def test_a_file_that_got_shorter_is_said(hub, tmp_path):
    async def short(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=416) if request.path.startswith("/content/") else None

    async with HubClient(hub.endpoint, pause_seconds=PAUSE) as client:
        manifest = await hub_manifest(client, REPOSITORY)
        hub.fault = short
        model = ModelStore(tmp_path).open(manifest)
        with pytest.raises(PomonaError, match=r"is shorter at the hub than it should be; fetch the model again"):
            await Transfer(model, ["layer-00000"], [HubSource(client, manifest)]).run()


async def test_another_etag_is_another_file(hub, tmp_path):
    async with HubClient(hub.endpoint, pause_seconds=PAUSE) as client:
        manifest = await hub_manifest(client, REPOSITORY)
        hub.etag = lambda _file, _right: "0" * 64
        model = ModelStore(tmp_path).open(manifest)
        with pytest.raises(PomonaError, match=r"The hub has another model-.* now than the manifest says"):
            await Transfer(model, ["layer-00000"], [HubSource(client, manifest)]).run()


async def test_an_index_that_names_missing_files_is_said(hub, folder):
    (folder / "model-00002-of-00002.safetensors").unlink()
    async with HubClient(hub.endpoint) as client:
        with pytest.raises(PomonaError, match=r"names files that the repository does not have \(model-00002"):
            await hub_manifest(client, REPOSITORY)


async def test_an_index_that_promises_more_than_the_files_hold_is_said(hub, folder):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.layers.9.surprise"] = "model-00001-of-00002.safetensors"
    path.write_text(json.dumps(index))
    async with HubClient(hub.endpoint) as client:
        with pytest.raises(PomonaError, match=r"lack 'model.layers.9.surprise', which its index promises"):
            await hub_manifest(client, REPOSITORY)


async def test_a_gated_model_needs_a_token_which_the_content_server_never_sees(hub, folder, tmp_path):
    hub.token = "hf_secret"
    with pytest.raises(PomonaError, match="The hub asks for permission"):
        await fetch(hub, tmp_path / "node", 0, 1)
    assert_right(await fetch(hub, tmp_path / "node", 0, 1, token="hf_secret"), folder, 0, 1)
    assert hub.content_tokens == []


async def test_a_name_that_the_hub_does_not_have(hub):
    async with HubClient(hub.endpoint) as client:
        with pytest.raises(PomonaError, match=r"The hub has no nobody/nothing"):
            await hub_manifest(client, "nobody/nothing")
        with pytest.raises(PomonaError, match="is no name of a model"):
            await hub_manifest(client, "../../etc")


async def test_search(hub):
    async with HubClient(hub.endpoint) as client:
        assert [found.id for found in await search_hub(client, "llama")] == [REPOSITORY]


async def test_a_full_disk_is_said_and_the_fetch_goes_on_later(hub, folder, tmp_path, small_chunks):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))  # Python ignores the signal that goes with it
    try:
        with pytest.raises(PomonaError, match=r"The disk is full, so .* what has come so far stays"):
            await fetch(hub, tmp_path / "node", 1, 5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_right(await fetch(hub, tmp_path / "node", 1, 5), folder, 1, 5)


async def test_a_tenth_of_the_disk_stays_free(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer_module, "KEPT_FREE", 1.0)
    with pytest.raises(PomonaError, match="GB free, of which a tenth of the disk stays free"):
        await fetch(hub, tmp_path / "node", 1, 5)


async def test_two_fetches_of_one_model_at_once_are_refused(hub, tmp_path):
    async with HubClient(hub.endpoint) as client:
        manifest = await hub_manifest(client, REPOSITORY)
        model = ModelStore(tmp_path).open(manifest)
        transfers = [Transfer(model, ["layer-00000"], [HubSource(client, manifest)]) for _ in range(2)]
        results = await asyncio.gather(*(transfer.run() for transfer in transfers), return_exceptions=True)
    refused = [result for result in results if isinstance(result, PomonaError)]
    assert len(refused) == 1
    assert "is being fetched already" in str(refused[0])


def test_a_token_is_kept_for_its_person_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "none"))
    keep_token(tmp_path / "data", "hf_x")
    assert stat.S_IMODE((tmp_path / "data" / "hub-token").stat().st_mode) == 0o600
    assert read_token(tmp_path / "data") == "hf_x"
    keep_token(tmp_path / "data", "")
    assert read_token(tmp_path / "data") is None
