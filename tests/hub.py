"""A hub on this machine that speaks the protocol of huggingface.co over real folders, and can be made to fail."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LFS = ".safetensors"


@dataclass
class Asked:
    """One request for content: which file and which bytes."""

    file: str
    begin: int
    end: int
    client: str


@dataclass
class LocalHub:
    """Serves ``repositories`` (name to folder). The content server is the same port under another host name."""

    repositories: dict[str, Path]
    token: str | None = None
    asked: list[Asked] = field(default_factory=list)
    content_tokens: list[str] = field(default_factory=list)
    """Tokens that the content server was shown: there must be none."""
    fault: Fault | None = None
    """May answer a request for content instead."""
    etag: Callable[[str, str], str] = lambda _file, right: right
    flip: Callable[[str, int, bytes], bytes] = lambda _file, _begin, data: data
    host: str = "127.0.0.1"
    port: int = 0
    content_host: str = "localhost"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="local hub")
        self._thread.start()
        started.wait(20)
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def content_bytes(self, suffix: str = LFS) -> int:
        """Bytes of content that were asked for."""
        return sum(each.end - each.begin for each in self.asked if each.file.endswith(suffix))

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        application = web.Application()
        application.router.add_get("/api/models", self._search)
        application.router.add_get("/api/models/{owner}/{name}/revision/{revision}", self._revision)
        application.router.add_get("/api/models/{owner}/{name}/tree/{revision}", self._tree)
        application.router.add_get("/{owner}/{name}/resolve/{revision}/{file}", self._resolve)
        application.router.add_get("/content/{owner}/{name}/{file}", self._content)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, self.host, self.port)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def _folder(self, request: web.Request) -> Path:
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise web.HTTPUnauthorized(text="Access to this model is restricted.")
        try:
            return self.repositories[f"{request.match_info['owner']}/{request.match_info['name']}"]
        except KeyError:
            raise web.HTTPNotFound from None

    async def _search(self, request: web.Request) -> web.Response:
        words = request.query["search"].lower()
        found = [name for name in self.repositories if words in name.lower()]
        return web.json_response([{"id": name, "downloads": 5, "likes": 1, "gated": False} for name in found])

    async def _revision(self, request: web.Request) -> web.Response:
        folder = self._folder(request)
        return web.json_response({"sha": COMMIT, "siblings": [{"rfilename": path.name} for path in folder.iterdir()]})

    async def _tree(self, request: web.Request) -> web.Response:
        """Two pages, so that a client has to follow the link."""
        paths = sorted(path for path in self._folder(request).iterdir() if path.is_file())
        entries: list[dict[str, Any]] = []
        for path in paths:
            entry = {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": git_oid(path)}
            if path.suffix == LFS:
                entry["lfs"] = {"oid": sha256(path), "size": path.stat().st_size, "pointerSize": 134}
            entries.append(entry)
        half = len(entries) // 2
        if "cursor" in request.query:
            return web.json_response(entries[half:])
        link = f'<{self.endpoint}{request.path}?cursor=2>; rel="next"'
        return web.json_response(entries[:half], headers={"Link": link})

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        path = self._folder(request) / request.match_info["file"]
        if not path.is_file():
            raise web.HTTPNotFound
        if path.suffix != LFS:
            return await self._bytes(request, path, git_oid(path))
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        location = f"http://{self.content_host}:{self.port}/content/{request.match_info['owner']}/{request.match_info['name']}/"
        return web.Response(
            status=302,
            headers={
                "Location": f"{location}{path.name}?signature=1",
                "X-Linked-ETag": f'"{self.etag(path.name, sha256(path))}"',
                "X-Linked-Size": str(path.stat().st_size),
                "X-Repo-Commit": COMMIT,
            },
        )

    async def _content(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            self.content_tokens.append(request.headers["Authorization"])
        path = self.repositories[f"{request.match_info['owner']}/{request.match_info['name']}"]
        return await self._bytes(request, path / request.match_info["file"], "content-etag")

    async def _bytes(self, request: web.Request, path: Path, etag: str) -> web.StreamResponse:
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        size = path.stat().st_size  # noqa: ASYNC240  a test's server may block
        wanted = request.http_range
        begin, end = wanted.start or 0, size if wanted.stop is None else min(wanted.stop, size)
        if begin >= size > 0:
            raise web.HTTPRequestRangeNotSatisfiable
        with path.open("rb") as file:
            file.seek(begin)
            data = self.flip(path.name, begin, file.read(end - begin))
        peer = request.remote or ""
        self.asked.append(Asked(path.name, begin, end, peer))
        headers = {"ETag": f'"{etag}"'}
        if "Range" in request.headers:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        return web.Response(status=206 if "Range" in request.headers else 200, body=data, headers=headers)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def git_oid(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def write_small_model(folder: Path, layers: int = 6, width: int = 64) -> Path:
    """A llama-like model in two files with real bytes, so that a wrong one shows; about 100 KB a layer."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (300, width), "model.norm.weight": (width,)}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        shapes |= {f"{prefix}self_attn.{name}.weight": (width, width) for name in ("q_proj", "k_proj", "v_proj")}
        shapes |= {f"{prefix}mlp.{name}.weight": (width, 8 * width) for name in ("gate_proj", "down_proj")}
    shapes["lm_head.weight"] = (300, width)
    folder.mkdir(parents=True)
    weight_map = {}
    names = list(shapes)
    for number, its in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        name = f"model-{number:05}-of-00002.safetensors"
        header, end = {}, 0
        for tensor in its:
            size = 2 * shapes[tensor][0] * (shapes[tensor][1] if len(shapes[tensor]) > 1 else 1)
            header[tensor] = {"dtype": "BF16", "shape": shapes[tensor], "data_offsets": [end, end + size]}
            end += size
            weight_map[tensor] = name
        text = json.dumps(header).encode()
        data = b"".join(hashlib.sha256(f"{name}{block}".encode()).digest() for block in range(end // 32 + 1))[:end]
        (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    config: dict[str, Any] = {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "hidden_size": width,
        "intermediate_size": 8 * width,
        "vocab_size": 300,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"words": ["a"] * 200}))
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    return folder
