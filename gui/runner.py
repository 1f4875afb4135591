"""One session at a time on the event loop: started, listened to, and always closed. No Qt."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from gui.coalesce import Coalescer
from runtime.cluster.messages import ClientMessage, Ended, Failed, ServerMessage
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

logger = logging.getLogger(__name__)


class Session(Protocol):
    """What a runner needs of :class:`runtime.cluster.client.SessionClient`."""

    async def send(self, message: ClientMessage) -> None:
        """Tell the controller something."""

    def events(self) -> AsyncIterator[ServerMessage]:
        """Everything that the controller says, until the session is over."""

    async def close(self) -> None:
        """End the session and its processes; harmless when it is over."""

    async def leave(self) -> None:
        """Let it go on without this window."""


class SessionRunner:
    """Delivers what sessions say, coalesced. The last message of each is ``Failed`` or ``Ended``.

    A failure is delivered at once; an asked-for end when nothing is left of the session. Belongs to one event loop.
    """

    def __init__(self, deliver: Callable[[ServerMessage], None]) -> None:
        self._deliver = deliver
        self._session: Session | None = None
        self._starting: asyncio.Task[None] | None = None
        """The newest session's task, for as long as its start can be cancelled."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, start: Callable[[], Awaitable[Session]]) -> None:
        """Start a session as soon as the one before is cleaned up."""
        task = asyncio.get_running_loop().create_task(self._run(start, tuple(self._tasks)))
        self._starting = task
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    @property
    def busy(self) -> bool:
        """Whether a session runs, or is being started or cleaned up."""
        return bool(self._tasks)

    async def send(self, message: ClientMessage) -> None:
        """Say something to the session. Raises :class:`PomonaError` when there is none."""
        if self._session is None:
            raise PomonaError("The model is not running any more. Start it and send the message again.")
        await self._session.send(message)

    async def end(self) -> None:
        """End the session, also while it still starts. One that is being cleaned up already is left to that."""
        if self._session is not None:
            await self._session.close()
        elif self._starting is not None:
            self._starting.cancel()

    async def leave(self) -> None:
        """Let the session go on without this window. One that still starts is ended."""
        session, self._session = self._session, None
        if session is None:
            await self.end()
            return
        for task in self._tasks:
            task.cancel()
        await session.leave()

    async def all_closed(self) -> None:
        """Wait until nothing is left of any session."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._cannot_be_cancelled(task)
        if task.cancelled():  # before it had begun
            self._deliver(Ended())

    def _cannot_be_cancelled(self, task: asyncio.Task[None] | None) -> None:
        if task is self._starting:
            self._starting = None

    async def _run(self, start: Callable[[], Awaitable[Session]], earlier: tuple[asyncio.Task[None], ...]) -> None:
        last: ServerMessage | None
        try:
            if earlier:
                await asyncio.wait(earlier)
            self._session = await start()
            self._cannot_be_cancelled(asyncio.current_task())
            last = await self._listen(self._session)
        except asyncio.CancelledError:
            last = Ended()
        except Exception as error:
            level = logging.INFO if isinstance(error, PomonaError) else logging.ERROR
            logger.log(level, "the session failed: %s", error, exc_info=error)
            last = Failed(sentence(error))
        self._cannot_be_cancelled(asyncio.current_task())
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.close()
        except Exception:
            logger.exception("the session did not close")
        if last is not None:
            self._deliver(last)

    async def _listen(self, session: Session) -> ServerMessage | None:
        """Deliver everything. An end is returned, to be told when the session is closed too."""
        coalescer = Coalescer(self._deliver)
        try:
            async for message in session.events():
                if isinstance(message, Ended):
                    return message
                coalescer.push(message)
                if isinstance(message, Failed):
                    return None
        finally:
            coalescer.flush()
        return Failed("The session ended without a reason. Start it again; the log may say more.")


def sentence(error: BaseException) -> str:
    """What a person is told of an error: its own sentence, or where to look."""
    if isinstance(error, PomonaError):
        return str(error)
    detail = str(error) or type(error).__name__
    return f"Something inside Pomona went wrong: {detail}. The log has the details."
