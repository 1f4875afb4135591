"""One asyncio loop in one background thread: takes work from any thread, loses no error, and ends in order."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from gui.runner import sentence
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

logger = logging.getLogger(__name__)

LOST_SECONDS = 25.0
"""How long the end may take before the window goes without it."""


class LoopThread:
    """Runs ``main``, which returns some time after the event that it is given is set.

    ``on_trouble`` gets a sentence for each error, ``on_stopped`` is called at the end; both in this thread.
    """

    def __init__(
        self,
        main: Callable[[asyncio.Event], Awaitable[None]],
        on_trouble: Callable[[str], None],
        on_stopped: Callable[[], None],
    ) -> None:
        self._main = main
        self._on_trouble = on_trouble
        self._on_stopped = on_stopped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pomona-asyncio", daemon=True)

    # Called from any thread ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread and wait until its loop takes work."""
        self._thread.start()
        self._running.wait()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def submit(self, work: Coroutine[object, object, None]) -> None:
        """Run it on the loop; what it raises is told as trouble."""
        if self._loop is None or self._loop.is_closed():
            work.close()
            return
        self._loop.call_soon_threadsafe(self.spawn, work)

    def shutdown(self) -> None:
        """Have ``main`` come to its end."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def join(self, limit_seconds: float = LOST_SECONDS) -> bool:
        """Wait for the thread; False when it did not end in time."""
        if self._thread.is_alive():
            self._thread.join(limit_seconds)
        return not self._thread.is_alive()

    # Called in the thread of the loop -----------------------------------------------------------------------------

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run it beside what runs."""
        task = asyncio.get_running_loop().create_task(self.guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def guarded(self, work: Coroutine[object, object, None]) -> None:
        """Run it here, to its end or its error."""
        try:
            await work
        except Exception as error:  # noqa: BLE001  whatever it is, the window says it and the log has it
            self.report(error)

    def report(self, error: BaseException) -> None:
        """Say it; one that nobody expected is in the log with its traceback."""
        expected = isinstance(error, PomonaError)
        logger.log(logging.INFO if expected else logging.ERROR, "%s", error, exc_info=error)
        self._on_trouble(sentence(error))

    def _run(self) -> None:
        try:
            asyncio.run(self._run_main())
        except Exception as error:  # noqa: BLE001  the thread's last line of defence: say it, never lose it
            self.report(error)
        finally:
            self._running.set()
            self._on_stopped()

    async def _run_main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_loop_error)
        self._stop = asyncio.Event()
        self._running.set()
        await self._main(self._stop)

    def _on_loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.report(error)
        else:
            logger.error("event loop: %s", context.get("message"))
