"""Where Qt and asyncio meet: one event loop in one thread owns the node watcher and the session.

Upwards go signals with frozen values, coalesced here; downwards go plain method calls that return at once. A slow
paint therefore never delays a peer, and nothing is shared.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui.runner import SessionRunner, sentence
from gui.services import real_services
from runtime.cluster.messages import Cancel, Chat
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from discovery.address import HostPort
    from gui.services import Services, Trust
    from runtime.check.result import CheckResult
    from runtime.cluster.nodes import KnownNode, UnpairedNode
    from runtime.planning.plan import Plan

logger = logging.getLogger(__name__)

LOST_SECONDS = 25.0
"""How long a shutdown may take before the window goes without it."""


class Bridge(QObject):
    """Runs the event loop and speaks to the window through signals, which arrive in the window's thread.

    Signals:
        nodes_changed: ``tuple[KnownNode, ...]``, all usable nodes.
        unpaired_changed: ``tuple[UnpairedNode, ...]``, those that could be paired.
        pairing_over: ``(node id, trouble)``: the pairing worked if the sentence is empty.
        code_shown: ``(ShownCode or None, trouble)``: this machine's code, or why there is none.
        layout_read: ``ModelLayout`` of the model folder.
        session_message: ``ServerMessage``; text at 25 Hz and numbers at 10 Hz at most.
        checks_read: :data:`gui.checks.Known`: what earlier checks of the model found.
        check_done: The ``CheckResult`` of a check, or None if it was cancelled or failed.
        trouble: A sentence for the person: something failed that belongs to no session.
        stopped: The loop has ended and the thread is about to.
    """

    nodes_changed = Signal(object)
    unpaired_changed = Signal(object)
    pairing_over = Signal(str, str)
    code_shown = Signal(object, str)
    layout_read = Signal(object)
    session_message = Signal(object)
    checks_read = Signal(object)
    check_done = Signal(object)
    trouble = Signal(str)
    stopped = Signal()

    def __init__(self, home: Path, model_folder: Path, services: Services | None = None) -> None:
        super().__init__()
        self._home = home
        self._model_folder = model_folder
        self._services = services
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._running = threading.Event()
        self._runner = SessionRunner(self.session_message.emit)
        self._tasks: set[asyncio.Task[None]] = set()
        self._checking: asyncio.Task[CheckResult] | None = None
        self._thread = threading.Thread(target=self._run_loop, name="pomona-asyncio", daemon=True)

    # Called from the window's thread ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread and wait until its loop takes commands."""
        self._thread.start()
        self._running.wait()

    def start_session(self, plan: Plan, nodes: Sequence[KnownNode]) -> None:
        """Start ``plan``; what becomes of it arrives as session messages, the last of them ``Failed`` or ``Ended``."""
        self._submit(self._begin_session(plan, tuple(nodes)))

    def stop_session(self) -> None:
        """End the session, also while it still starts."""
        self._submit(self._runner.end())

    def ask(self, chat: Chat) -> None:
        """Send a question to the model."""
        self._submit(self._runner.send(chat))

    def cancel(self, request_id: str) -> None:
        """Stop an answer."""
        self._submit(self._runner.send(Cancel(request_id)))

    def pair(self, node: UnpairedNode, code: str) -> None:
        """Pair with a node; ``pairing_over`` follows."""
        self._submit(self._pair(node, code))

    def remove_node(self, node_id: str) -> None:
        """Trust a node no more."""
        self._submit(self._with_trust(lambda trust: trust.remove(node_id)))

    def show_code(self) -> None:
        """Show a code on this machine; ``code_shown`` follows."""
        self._submit(self._show_code())

    def hide_code(self) -> None:
        """Show none any more."""
        self._submit(self._hide_code())

    def add_address(self, place: HostPort) -> None:
        """Look for a node there from now on."""
        self._submit(self._with_trust(lambda trust: trust.add_address(place)))

    def check(self, plan: Plan) -> None:
        """Compare ``plan`` with the whole model, on this machine; ``check_done`` follows."""
        self._submit(self._check(plan))

    def cancel_check(self) -> None:
        """End the check."""
        self._submit(self._end_check())

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def shutdown(self) -> None:
        """Begin to end everything; ``stopped`` follows."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def join(self, limit_seconds: float = LOST_SECONDS) -> bool:
        """Wait for the thread; False when it did not end in time."""
        if self._thread.is_alive():
            self._thread.join(limit_seconds)
        return not self._thread.is_alive()

    def _submit(self, work: Coroutine[object, object, None]) -> None:
        if self._loop is None or self._loop.is_closed():
            work.close()
            return
        self._loop.call_soon_threadsafe(self._spawn, work)

    # Runs in the thread of the loop -------------------------------------------------------------------------------

    def _run_loop(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:  # noqa: BLE001  the thread's last line of defence: say it, never lose it
            self._report(error)
        finally:
            self._running.set()
            self.stopped.emit()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_loop_error)
        self._stop = asyncio.Event()
        self._running.set()
        try:
            services = self._services or real_services()
        except Exception as error:  # noqa: BLE001  a broken installation must show in the window
            self._report(error)
            await self._stop.wait()
            return
        self._services = services
        self._spawn(self._read_layout(services))
        watcher = services.watch(self._home, self.nodes_changed.emit, self.unpaired_changed.emit)
        self._spawn(watcher.start())
        await self._stop.wait()
        await self._guarded(self._runner.end())
        await self._end_check()
        await self._runner.all_closed()
        await self._guarded(watcher.close())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  whatever it is, the window says it and the log has it
            self._report(error)

    def _report(self, error: BaseException) -> None:
        expected = isinstance(error, PomonaError)
        logger.log(logging.INFO if expected else logging.ERROR, "%s", error, exc_info=error)
        self.trouble.emit(sentence(error))

    def _on_loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._report(error)
        else:
            logger.error("event loop: %s", context.get("message"))

    async def _read_layout(self, services: Services) -> None:
        self.layout_read.emit(await asyncio.to_thread(services.read_layout, self._model_folder))
        self.checks_read.emit(await asyncio.to_thread(services.known_checks, self._model_folder))

    async def _check(self, plan: Plan) -> None:
        services = self._services
        assert services is not None  # the window only checks what it was told of by them
        result = None
        self._checking = asyncio.ensure_future(services.check(self._model_folder, plan))
        try:
            await asyncio.wait({self._checking})
            if not self._checking.cancelled():
                result = self._checking.result()
        finally:
            self._checking = None
            self.check_done.emit(result)

    async def _end_check(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait({self._checking})

    async def _begin_session(self, plan: Plan, nodes: tuple[KnownNode, ...]) -> None:
        services = self._services
        assert services is not None  # the window only starts what it was told of by them
        self._runner.begin(lambda: services.start_session(plan, self._model_folder, nodes, self._home))

    async def _with_trust(self, does: Callable[[Trust], Awaitable[None]]) -> None:
        assert self._services is not None  # the window shows nothing before them
        await does(self._services.trust(self._home))

    async def _pair(self, node: UnpairedNode, code: str) -> None:
        try:
            await self._with_trust(lambda trust: trust.pair(node, code))
        except PomonaError as error:
            logger.info("%s", error, exc_info=error)
            self.pairing_over.emit(node.node_id, str(error))
        else:
            self.pairing_over.emit(node.node_id, "")

    async def _show_code(self) -> None:
        assert self._services is not None  # the window shows nothing before them
        try:
            shown = await self._services.trust(self._home).show_code()
        except PomonaError as error:
            self.code_shown.emit(None, str(error))
        else:
            self.code_shown.emit(shown, "")

    async def _hide_code(self) -> None:
        try:
            await self._with_trust(lambda trust: trust.hide_code())
        except PomonaError as error:  # without an agent there is no code either
            logger.info("%s", error)
