"""A peer's model bytes beside a plain copy over TLS by blocking sockets: ``python -m tests.bench.peer_copy``.

Both read a file in one process, send it over loopback with the same certificates to another, and leave it on the disk.
The plain one checks nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
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
    from multiprocessing.connection import Connection

    from runtime.models.manifest import Manifest
    from runtime.models.store import StoredModel

NAMES = "studio", "mini"
LOOPBACK = "127.0.0.1"
WEIGHTS = "model.safetensors"
MEBIBYTES = 128
PIECE_BYTES = 1 << 20
ROUNDS = 9
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
    with (folder / WEIGHTS).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(end // len(block)):
            file.write(block)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 8}))
    return folder


def serve(folder: Path, model: Path, ports: Connection) -> None:
    """The peer, a process of its own as every agent is: sends its ports, and ends with the other end of ``ports``."""
    with nodes(folder, *NAMES) as (studio, _mini), socket.create_server((LOOPBACK, 0)) as listener:
        studio.library.add_folder(model)
        threading.Thread(target=send_plainly, args=(studio, listener, model / WEIGHTS), daemon=True).start()
        ports.send((studio.port, listener.getsockname()[1]))
        with contextlib.suppress(EOFError):
            ports.recv()


def send_plainly(studio: Node, listener: socket.socket, source: Path) -> None:
    """``sendall`` to whoever connects."""
    while True:
        line, _address = listener.accept()
        with studio.keys.server_context().wrap_socket(line, server_side=True) as channel, source.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                channel.sendall(piece)


def plain_copy(studio: Node, mini: Node, port: int, target: Path) -> None:
    """``recv_into`` and ``write``."""
    its = mini.identity
    context = tls.client_context(its.certificate_path, its.key_path, studio.identity.certificate_pem)
    buffer = memoryview(bytearray(PIECE_BYTES))
    with (
        socket.create_connection((LOOPBACK, port)) as line,
        context.wrap_socket(line) as channel,
        target.open("wb") as file,
    ):
        while count := channel.recv_into(buffer):
            file.write(buffer[:count])
        os.fsync(file.fileno())


async def peer_copy(studio: Node, mini: Node, port: int, manifest: Manifest) -> StoredModel:
    """All layers into the store, checked and published."""
    names = sorted(model_parts(manifest))
    async with studio.source_for(mini, manifest, names, port=port) as peer:
        model, _progress = await mini.fetch(manifest, names, [peer])
    return model


def forget(model: StoredModel) -> None:
    """Delete what was copied."""
    for part in model.parts().values():
        model.drop(part)


def measure(scratch: Path) -> tuple[list[float], list[float]]:
    """Seconds of the plain copies and of ours, alternated."""
    model = write_model(scratch / "model")
    plain: list[float] = []
    ours: list[float] = []
    processes = multiprocessing.get_context("spawn")
    with nodes(scratch, *NAMES) as (studio, mini):
        manifest = studio.library.add_folder(model)
        ports, far_end = processes.Pipe()
        peer = processes.Process(target=serve, args=(scratch, model, far_end))
        peer.start()
        far_end.close()
        port, plain_port = ports.recv()
        forget(asyncio.run(peer_copy(studio, mini, port, manifest)))  # the peer hashes its chunks the first time
        for _ in range(ROUNDS):
            started = time.perf_counter()
            plain_copy(studio, mini, plain_port, scratch / "copy")
            plain.append(time.perf_counter() - started)
            (scratch / "copy").unlink()
            started = time.perf_counter()
            copied = asyncio.run(peer_copy(studio, mini, port, manifest))
            ours.append(time.perf_counter() - started)
            forget(copied)
        ports.close()
        peer.join()
    return plain, ours


def main() -> None:
    """Print medians of alternated rounds."""
    with tempfile.TemporaryDirectory() as scratch:
        plain, ours = measure(Path(scratch))
    ratio = median(plain) / median(ours)
    for what, seconds in (("plain TLS copy", plain), ("from a peer", ours)):
        print(f"{what:<16}{MEBIBYTES / median(seconds):>7.0f} MiB/s  ({min(seconds):.2f} to {max(seconds):.2f} s)")
    print(f"ratio {ratio:.2f}, at least {LEAST_RATIO}")


if __name__ == "__main__":
    main()
