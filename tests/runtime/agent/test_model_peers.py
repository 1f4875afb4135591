"""Parts of models from peers: trusted ones only, checked, several at once, and the hub asked once for each byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self

import pytest

from discovery import tls
from discovery.identity import load_identity
from runtime.agent.models.peer_source import PeerPlace, PeerSource, peer_manifest
from runtime.errors import PomonaError
from runtime.models import parts as parts_module
from runtime.models.fetch import transfer as transfer_module
from runtime.models.fetch.journal import PartialPart
from runtime.models.fetch.source import SourceError
from runtime.models.hub.client import HubClient
from runtime.models.hub.repository import hub_manifest
from runtime.models.hub.source import HubSource
from runtime.models.manifest import folder_manifest
from runtime.models.part_files import FullFolder, SplitFolder
from runtime.models.parts import model_parts, stage_parts
from tests.hub import LocalHub, write_small_model
from tests.runtime.agent.peers import nodes

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.store import StoredModel
    from tests.runtime.agent.peers import Node

REPOSITORY = "someone/Small-Llama"


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_small_model(tmp_path / "Small-Llama", layers=30)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch) -> None:
    """Chunks of 16 KiB, so that a small model has many."""
    monkeypatch.setattr(parts_module, "CHUNK_BYTES", 16 << 10)
    monkeypatch.setattr(transfer_module, "CHUNK_BYTES", 16 << 10)


def assert_right(model: StoredModel, folder: Path, names: list[str]) -> None:
    original, parts = FullFolder(folder, model.manifest), model.parts()
    assert set(names) <= set(model.held(parts.values()))
    for name in names:
        span = (0, parts[name].byte_count)
        assert SplitFolder(model.folder).read(parts[name], *span) == original.read(parts[name], *span)


async def test_a_full_folder_serves_parts_and_small_files(folder, tmp_path):
    with nodes(tmp_path, "studio", "mini") as (studio, mini):
        manifest = studio.library.add_folder(folder)
        names = stage_parts(model_parts(manifest), 0, 12)
        async with studio.source_for(mini, manifest, names) as source:
            assert await peer_manifest([source]) == manifest
            model, progress = await mini.fetch(manifest, names, [source])
        assert_right(model, folder, names)
        assert progress.from_source == {"studio": sum(model.parts()[name].byte_count for name in names)}
        assert (model.folder / "config.json").read_bytes() == (folder / "config.json").read_bytes()


async def test_a_moved_boundary_moves_two_layers_from_the_peer(folder, tmp_path):
    with nodes(tmp_path, "first", "second", "third") as (first, second, third):
        manifest = folder_manifest(folder)
        parts = model_parts(manifest)
        full = second.library.add_folder(folder)
        for node, span in ((first, (0, 5)), (third, (23, 30))):
            names = stage_parts(parts, *span)
            async with second.source_for(node, full, names) as source:
                await node.fetch(manifest, names, [source])
        before = second.server.sent_bytes
        wanted = stage_parts(parts, 0, 7)
        async with second.source_for(first, full, wanted) as source:
            model, progress = await first.fetch(manifest, wanted, [source])
        moved = sum(parts[f"layer-{layer:05}"].byte_count for layer in (5, 6))
        assert second.server.sent_bytes - before == moved
        assert progress.from_source == {"second": moved}
        assert_right(model, folder, wanted)


async def test_the_hub_is_asked_once_for_each_byte(folder, tmp_path):
    """Three nodes that all want everything, each asking the hub for a third of it."""
    with LocalHub({REPOSITORY: folder}) as hub, nodes(tmp_path, "a", "b", "c") as members:
        async with HubClient(hub.endpoint) as client:
            manifest = await hub_manifest(client, REPOSITORY)
            names = sorted(model_parts(manifest))
            header_bytes = hub.content_bytes()
            shares = {node.name: names[place::3] for place, node in enumerate(members)}

            async def fetch(node: Node) -> StoredModel:
                async with contextlib.AsyncExitStack() as stack:
                    others = [
                        await stack.enter_async_context(other.source_for(node, manifest, later=shares[other.name]))
                        for other in members
                        if other is not node
                    ]
                    model, _progress = await node.fetch(manifest, names, [*others, HubSource(client, manifest)])
                    return model

            models = await asyncio.gather(*map(fetch, members))
        for model in models:
            assert_right(model, folder, names)
        tensor_bytes = sum(part.tensor_bytes for part in models[0].parts().values())
        assert tensor_bytes <= hub.content_bytes() - header_bytes <= 1.03 * tensor_bytes


async def test_several_peers_give_at_once(folder, tmp_path):
    with nodes(tmp_path, "one", "two", "mini") as (one, two, mini):
        manifest = one.library.add_folder(folder)
        two.library.add_folder(folder)
        names = sorted(model_parts(manifest))
        async with one.source_for(mini, manifest, names) as first, two.source_for(mini, manifest, names) as second:
            model, progress = await mini.fetch(manifest, names, [first, second])
        assert_right(model, folder, names)
        assert set(progress.from_source) == {"one", "two"}


async def test_a_flipped_bit_on_a_peers_disk_is_found_and_another_peer_asked(folder, tmp_path):
    with nodes(tmp_path, "good", "bad", "mini") as (good, bad, mini):
        manifest = good.library.add_folder(folder)
        name = "layer-00003"
        async with good.source_for(bad, manifest, [name]) as source:
            stored, _progress = await bad.fetch(manifest, [name], [source])
        path = stored.folder / f"model-{name}.safetensors"
        data = bytearray(path.read_bytes())
        data[40_000] ^= 4
        path.write_bytes(data)
        async with bad.source_for(mini, manifest, [name]) as source:
            with pytest.raises(PomonaError, match="layer-00003 came damaged from bad: its disk or memory has a fault"):
                await mini.fetch(manifest, [name], [source])
        async with bad.source_for(mini, manifest, [name]) as first, good.source_for(mini, manifest, [name]) as second:
            model, _progress = await mini.fetch(manifest, [name], [first, second])
        assert_right(model, folder, [name])


async def test_a_peer_that_dies_is_replaced_by_the_hub(folder, tmp_path):
    with LocalHub({REPOSITORY: folder}) as hub, nodes(tmp_path, "studio", "mini") as (studio, mini):
        async with HubClient(hub.endpoint) as client:
            manifest = await hub_manifest(client, REPOSITORY)
            names = sorted(model_parts(manifest))
            async with studio.source_for(mini, manifest, names) as source:
                studio.server.close()
                model, progress = await mini.fetch(manifest, names, [source, HubSource(client, manifest)])
        assert_right(model, folder, names)
        assert set(progress.from_source) == {"the hub"}


async def test_a_cable_that_is_cut_is_noticed_and_the_fetch_goes_on_later(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.agent.models.peer_source._SILENCE_SECONDS", 1.0)
    with nodes(tmp_path, "studio", "mini") as (studio, mini), Cable(studio.port, cut_after_bytes=400_000) as cable:
        manifest = studio.library.add_folder(folder)
        names = sorted(model_parts(manifest))
        async with studio.source_for(mini, manifest, names, port=cable.port) as source:
            with pytest.raises(PomonaError, match="could not be fetched: studio is not reached any more"):
                await mini.fetch(manifest, names, [source])
        before = studio.server.sent_bytes
        async with studio.source_for(mini, manifest, names) as source:
            model, _progress = await mini.fetch(manifest, names, [source])
        assert_right(model, folder, names)
        assert studio.server.sent_bytes - before < sum(part.byte_count for part in model.parts().values()) - 200_000


async def test_only_trusted_nodes_may_read(folder, tmp_path):
    with nodes(tmp_path, "studio", "mini") as (studio, mini):
        manifest = studio.library.add_folder(folder)
        stranger = load_identity(tmp_path / "stranger")
        context = tls.client_context(stranger.certificate_path, stranger.key_path, studio.identity.certificate_pem)
        place = PeerPlace("studio", "127.0.0.1", studio.port, context)
        with pytest.raises(SourceError):
            await PeerSource(place, manifest.name, manifest.revision).manifest()
        nobody = tls.anonymous_context(studio.identity.certificate_pem)
        place = PeerPlace("studio", "127.0.0.1", studio.port, nobody)
        with pytest.raises(SourceError):
            await PeerSource(place, manifest.name, manifest.revision).manifest()
        async with studio.source_for(mini, manifest, ["layer-00000"]) as source:
            part = model_parts(manifest)["layer-00000"]
            partial = PartialPart(part, tmp_path / part.name)
            with contextlib.closing(partial.writer(0)) as writer:
                await source.chunk(part, 0, writer)
            del studio.keys.trusted[mini.identity.node_id]  # removed while it is connected
            with pytest.raises(SourceError), contextlib.closing(partial.writer(1)) as writer:
                await source.chunk(part, 1, writer)


async def test_another_node_at_the_address_is_not_believed(folder, tmp_path):
    with nodes(tmp_path, "studio", "mini", "liar") as (studio, mini, liar):
        manifest = studio.library.add_folder(folder)
        async with studio.source_for(mini, manifest, ["layer-00000"], port=liar.port) as source:
            with pytest.raises(SourceError, match="Another node answers where studio was"):
                await source.manifest()


@pytest.mark.parametrize(
    "name", ["../secret.json", "/etc/passwd", "modeling_evil.py", "model-00001-of-00002.safetensors"]
)
async def test_only_files_of_the_manifest_are_served(folder, tmp_path, name):
    with nodes(tmp_path, "studio", "mini") as (studio, mini):
        manifest = studio.library.add_folder(folder)
        (folder.parent / "secret.json").write_text("{}")
        async with studio.source_for(mini, manifest) as source:
            with pytest.raises(SourceError, match="studio does not have"):
                await source.small(name)


async def test_garbage_on_the_port_harms_nobody(folder, tmp_path):
    with nodes(tmp_path, "studio", "mini") as (studio, mini):
        manifest = studio.library.add_folder(folder)
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(1000), bytes(100_000)):
            with socket.create_connection(("127.0.0.1", studio.port)) as line:
                line.sendall(garbage)
        its = mini.identity
        context = tls.client_context(its.certificate_path, its.key_path, studio.identity.certificate_pem)
        for garbage in (b"\xff\xff\xff\xff", b"\0\0\0\4nope", b"\0\0\0\0"):
            with socket.create_connection(("127.0.0.1", studio.port)) as line, context.wrap_socket(line) as channel:
                channel.sendall(garbage)
                assert channel.recv(1) == b""
        async with studio.source_for(mini, manifest, ["last"]) as source:
            model, _progress = await mini.fetch(manifest, ["last"], [source])
        assert_right(model, folder, ["last"])


class Cable:
    """Passes bytes on to a port, until it falls silent: nothing is closed, as with a cable that is pulled."""

    def __init__(self, port: int, cut_after_bytes: int) -> None:
        self._target = port
        self._left = cut_after_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lines: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                near, _address = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._lines += [near, far]
            for source, target in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass, args=(source, target))
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._left -= len(data)
                if self._left > 0:
                    target.sendall(data)
