"""A peer's model bytes beside a plain copy over TLS by blocking sockets: ``python -m tests.bench.peer_copy``.

Both read a file, send it over loopback with the same certificates, and leave it on the disk. The plain one checks
nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from discovery import tls
from runtime.models.parts import model_parts
from tests.runtime.agent.peers import Node, nodes

if TYPE_CHECKING:
    from runtime.models.manifest import Manifest

MEBIBYTES = 128
PIECE_BYTES = 1 << 20
ROUNDS = 3
LEAST_RATIO = 0.8


def write_model(folder: Path) -> Path:
    """Eight layers of 16 MiB."""
    folder.mkdir()
    header: dict[str, object] = {}
    end = 0
    for layer in range(8):
        size = MEBIBYTES << 17
        header[f"model.layers.{layer}.weight"] = {
            "dtype": "U8", "shape": [size], "data_offsets": [end, end + size],
        }  # fmt: skip
        end += size
    text = json.dumps(header).encode()
    block = bytes(range(256)) * 4096
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(end // len(block)):
            file.write(block)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 8}))
    return folder


def plain_copy(studio: Node, mini: Node, source: Path, target: Path) -> None:
    """``sendall`` and ``recv_into`` between two threads."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        line, _address = listener.accept()
        with studio.keys.server_context().wrap_socket(line, server_side=True) as channel, source.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                channel.sendall(piece)

    sending = threading.Thread(target=serve)
    sending.start()
    its = mini.identity
    context = tls.client_context(its.certificate_path, its.key_path, studio.identity.certificate_pem)
    buffer = memoryview(bytearray(PIECE_BYTES))
    with (
        socket.create_connection(listener.getsockname()) as line,
        context.wrap_socket(line) as channel,
        target.open("wb") as file,
    ):
        while count := channel.recv_into(buffer):
            file.write(buffer[:count])
        os.fsync(file.fileno())
    sending.join()
    listener.close()


async def peer_copy(studio: Node, mini: Node, manifest: Manifest) -> None:
    """All layers into the store, checked and published."""
    names = sorted(model_parts(manifest))
    async with studio.source_for(mini, manifest, names) as peer:
        model, _progress = await mini.fetch(manifest, names, [peer])
    for part in model.parts().values():
        model.drop(part)


def main() -> None:
    """Print medians of alternated rounds."""
    with tempfile.TemporaryDirectory() as scratch, nodes(Path(scratch), "studio", "mini") as (studio, mini):
        folder = write_model(Path(scratch, "model"))
        manifest = studio.library.add_folder(folder)
        asyncio.run(peer_copy(studio, mini, manifest))  # the peer hashes its chunks the first time
        plain: list[float] = []
        ours: list[float] = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            plain_copy(studio, mini, folder / "model.safetensors", Path(scratch, "copy"))
            plain.append(time.perf_counter() - started)
            started = time.perf_counter()
            asyncio.run(peer_copy(studio, mini, manifest))
            ours.append(time.perf_counter() - started)
    ratio = median(plain) / median(ours)
    for what, seconds in (("plain TLS copy", plain), ("from a peer", ours)):
        print(f"{what:<16}{MEBIBYTES / median(seconds):>7.0f} MiB/s  ({min(seconds):.2f} to {max(seconds):.2f} s)")
    print(f"ratio {ratio:.2f}, at least {LEAST_RATIO}")


if __name__ == "__main__":
    main()
