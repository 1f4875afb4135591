"""Requests to a hub, with retries and sentences. ``HF_ENDPOINT`` names another hub than huggingface.co.

The protocol is that of ``huggingface_hub``: ``/api/models/…`` answers in JSON; a file is at
``/<repository>/resolve/<commit>/<file>``, mostly by a redirect to a content server, which must not see the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
import msgspec
from yarl import URL

from runtime.errors import PomonaError
from runtime.models.fetch.source import SourceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

log = logging.getLogger(__name__)

PUBLIC_HUB = "https://huggingface.co"
TOKEN_FILE = "hub-token"  # noqa: S105  the name of a file
ATTEMPTS = 5
MAX_ANSWER_BYTES = 64 << 20

_BUSY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, 500, 502, 503, 504}
_LONGEST_WAIT_SECONDS = 60.0
_SILENCE_SECONDS = 30.0
_OWN_HOSTS = ("127.0.0.1", "::1", "localhost")


class FileAt(NamedTuple):
    """Where a file's bytes are now."""

    url: URL
    etag: str
    byte_count: int | None


class HubClient:
    """An async context; one connection pool. ``pause_seconds`` is waited before the second attempt, then doubled."""

    def __init__(self, endpoint: str | None = None, token: str | None = None, pause_seconds: float = 0.5) -> None:
        self.endpoint = URL((endpoint or os.environ.get("HF_ENDPOINT") or PUBLIC_HUB).rstrip("/"))
        self._token = token
        self._pause_seconds = pause_seconds
        self._session: aiohttp.ClientSession | None = None
        self.received_bytes = 0
        """Of bodies, so far."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE_SECONDS, sock_read=_SILENCE_SECONDS),
            headers={"Accept-Encoding": "identity", "User-Agent": "pomona"},
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=self.endpoint.host not in _OWN_HOSTS,  # a proxy that the person, or the system, has set
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._session is not None  # it was entered
        await self._session.close()

    async def get_json(self, path: str, **query: str | int) -> tuple[Any, URL | None]:
        """What the API says, and where it goes on if it has more."""
        url = self.endpoint.join(URL(path)).update_query(query)
        return await self.get_json_at(url)

    async def get_json_at(self, url: URL) -> tuple[Any, URL | None]:
        """The same at a whole address, which must be the hub's own."""
        if url.origin() != self.endpoint.origin():
            raise SourceError("The hub sends its readers elsewhere; look at HF_ENDPOINT.")
        async with self._answer(url, {}) as answer:
            body = await self._body(answer, MAX_ANSWER_BYTES)
            more = answer.links["next"]["url"] if "next" in answer.links else None
        try:
            return msgspec.json.decode(body), URL(str(more)) if more else None
        except (msgspec.DecodeError, RecursionError) as error:
            raise SourceError(f"{self.endpoint.host} does not answer as a hub does; look at HF_ENDPOINT.") from error

    async def locate(self, repository: str, commit: str, name: str) -> FileAt:
        """Ask where a file is. Raises :class:`SourceError`."""
        url = self.endpoint / repository / "resolve" / commit / name
        async with self._answer(url, {"Range": "bytes=0-0"}) as answer:
            served = answer.headers.get("X-Repo-Commit", commit)
            if served != commit:
                raise SourceError(f"The hub gives {name} of another revision than was asked for; fetch it again.")
            etag = answer.headers.get("X-Linked-ETag") or answer.headers.get("ETag") or ""
            size = answer.headers.get("X-Linked-Size") or answer.headers.get("Content-Range", "").rpartition("/")[2]
            location = answer.headers.get("Location")
        target = url.join(URL(location, encoded=True)) if location else url
        return FileAt(target, clean_etag(etag), int(size) if size.isdigit() else None)

    async def read_range(self, where: FileAt, begin: int, end: int, name: str) -> tuple[bytes, str]:
        """Bytes ``[begin, end)`` of a file that was located, and the content server's ETag."""
        async with self._answer(where.url, {"Range": f"bytes={begin}-{end - 1}"}) as answer:
            if answer.status != HTTPStatus.PARTIAL_CONTENT:
                raise SourceError(f"The hub does not give a part of {name} but all of it; it cannot be fetched so.")
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if where.byte_count is not None and total.isdigit() and int(total) != where.byte_count:
                raise SourceError(f"{name} has {total} bytes at the hub instead of {where.byte_count}; fetch it again.")
            body = await self._body(answer, end - begin)
            if len(body) != end - begin:
                raise _Interrupted(f"{len(body)} of {end - begin} bytes")
            return body, clean_etag(answer.headers.get("ETag", ""))

    async def read_small(self, repository: str, commit: str, name: str, byte_count: int) -> bytes:
        """A whole small file."""
        url = self.endpoint / repository / "resolve" / commit / name
        for _redirect in range(3):
            async with self._answer(url, {}) as answer:
                if location := answer.headers.get("Location"):
                    url = url.join(URL(location, encoded=True))
                    continue
                return await self._body(answer, byte_count)
        raise SourceError(f"The hub sends its readers in circles for {name}.")

    async def retried(self, what: str, work: Any) -> Any:
        """Await ``work()`` again when the line breaks or the hub is busy; ``what`` is for the sentence."""
        cause: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                return await work()
            except (aiohttp.ClientError, TimeoutError, OSError, _Interrupted) as error:
                cause = error
                wait = self._pause_seconds * 2**attempt
            except _Busy as error:
                cause = error
                wait = max(self._pause_seconds * 2**attempt, error.wait_seconds)
            log.info("%s, attempt %d: %s", what, attempt + 1, cause)
            if attempt + 1 < ATTEMPTS:
                await asyncio.sleep(min(wait, _LONGEST_WAIT_SECONDS))
        raise SourceError(
            f"The hub {self.endpoint.host} did not give {what} in {ATTEMPTS} attempts ({cause}); try again later."
        ) from cause

    @contextlib.asynccontextmanager
    async def _answer(self, url: URL, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None  # it was entered
        if self._token and url.origin() == self.endpoint.origin():
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
            self._check(answer, url)
            yield answer

    def _check(self, answer: aiohttp.ClientResponse, url: URL) -> None:
        status = answer.status
        if status in _BUSY:
            after = answer.headers.get("Retry-After", "")
            raise _Busy(f"status {status}", float(after) if after.isdigit() else 0.0)
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            if url.origin() != self.endpoint.origin():
                raise AddressExpired
            raise SourceError(
                "The hub asks for permission: open the model's page, accept its terms, and give Pomona a token "
                "(pomona models token)."
            )
        if status == HTTPStatus.NOT_FOUND:
            raise SourceError(f"The hub has no {url.path.removeprefix('/api/models/').strip('/')}; check the name.")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise SourceError(f"{url.name} is shorter at the hub than it should be; fetch the model again.")
        if status >= HTTPStatus.BAD_REQUEST:
            raise SourceError(f"The hub refuses {url.path} (status {status}).")

    async def _body(self, answer: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
        body = bytearray()
        async for piece in answer.content.iter_any():
            body += piece
            self.received_bytes += len(piece)
            if len(body) > limit_bytes:
                raise SourceError("The hub sends more than was asked for.")
        return bytes(body)


class AddressExpired(Exception):
    """The content server does not accept the address any more; locate the file again."""


class _Busy(Exception):
    def __init__(self, words: str, wait_seconds: float) -> None:
        super().__init__(words)
        self.wait_seconds = wait_seconds


class _Interrupted(Exception):
    pass


def clean_etag(etag: str) -> str:
    """An ETag without what HTTP wraps it in."""
    return etag.removeprefix("W/").strip('"')


def read_token(folder: Path) -> str | None:
    """The hub's token: from the environment, from ``folder``, or where ``huggingface_hub`` keeps one."""
    if token := os.environ.get("HF_TOKEN"):
        return token.strip()
    for path in _token_files(folder):
        with contextlib.suppress(OSError):
            if token := path.read_text().strip():
                return token
    return None


def token_source(folder: Path) -> str:
    """Where :func:`read_token` finds one, for a person; empty if nowhere."""
    if os.environ.get("HF_TOKEN"):
        return "HF_TOKEN in the environment"
    for path in _token_files(folder):
        with contextlib.suppress(OSError):
            if path.read_text().strip():
                return "Pomona's folder, which only you can read" if path.parent == folder else str(path)
    return ""


def _token_files(folder: Path) -> tuple[Path, Path]:
    """Ours, and that of ``huggingface_hub``."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    return folder / TOKEN_FILE, home / "token"


def keep_token(folder: Path, token: str) -> None:
    """Keep a token where only this person can read it (0600). An empty one is forgotten."""
    path = folder / TOKEN_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if token:
            mode = stat.S_IRUSR | stat.S_IWUSR
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:  # noqa: PTH123  of a descriptor
                file.write(token)
    except OSError as error:
        raise PomonaError(f"The token cannot be kept in {folder} ({error.strerror}).") from error
