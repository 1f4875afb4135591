"""Where Qt and asyncio meet: one event loop in one thread (loop.py) owns the node watcher and the session.

Upwards go signals with frozen values, coalesced here; downwards go plain method calls that return at once. A slow
paint therefore never delays a peer, and nothing is shared.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui.errands import CheckErrand, MachineErrands, TrustErrands
from gui.loop import LoopThread
from gui.models.bridge import ModelBridge
from gui.runner import SessionRunner
from gui.services import real_services
from gui.settings.bridge import SettingsBridge
from runtime.agent.models.messages import ModelOrder
from runtime.cluster.messages import Cancel, Chat, Resplit
from runtime.models.folder_names import folder_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from discovery.address import HostPort
    from gui.services import Services
    from runtime.cluster.nodes import KnownNode, UnpairedNode
    from runtime.planning.values import Plan


class Bridge(QObject):
    """Runs the event loop and speaks to the window through signals, which arrive in the window's thread.

    Signals:
        nodes_changed: ``tuple[KnownNode, ...]``, all usable nodes.
        links_changed: ``tuple[NodePair, ...]``, the ways between them, once they are measured.
        unpaired_changed: ``tuple[UnpairedNode, ...]``, those that could be paired.
        pairing_over: ``(node id, trouble)``: the pairing worked if the sentence is empty.
        code_shown: ``(ShownCode or None, trouble)``: this machine's code, or why there is none.
        network_checked: A :class:`discovery.local_network.Verdict`.
        sharing_told: ``(on, why it cannot be switched, trouble)``: whether this machine is shared at login.
        model_reading: What is being read of a model; empty when it could not be.
        model_chosen: The folder of the model that is shown now.
        layout_read: ``ModelLayout`` of the model folder.
        session_found: A ``RunningNote``: an earlier window's session runs; its messages follow.
        session_message: ``ServerMessage``; text at 25 Hz and numbers at 10 Hz at most.
        checks_read: :data:`gui.checks.Known`: what earlier checks of the model found.
        check_done: The ``CheckResult`` of a check, or None if it was cancelled or failed.
        trouble: A sentence for the person: something failed that belongs to no session.
        stopped: The loop has ended and the thread is about to.
    """

    nodes_changed = Signal(object)
    links_changed = Signal(object)
    unpaired_changed = Signal(object)
    pairing_over = Signal(str, str)
    code_shown = Signal(object, str)
    network_checked = Signal(object)
    sharing_told = Signal(bool, str, str)
    model_reading = Signal(str)
    model_chosen = Signal(str)
    layout_read = Signal(object)
    session_found = Signal(object)
    session_message = Signal(object)
    checks_read = Signal(object)
    check_done = Signal(object)
    trouble = Signal(str)
    stopped = Signal()

    def __init__(
        self,
        home: Path,
        model_folder: Path | None,
        services: Services | None = None,
        *,
        behind: Callable[[], None] | None = None,
        demo: bool = False,
    ) -> None:
        super().__init__()
        self.home = home
        self.model_folder = model_folder
        self._behind = behind
        self._demo = demo
        self._services = services
        loop = self._loop = LoopThread(self._main, self.trouble.emit, self.stopped.emit)
        self.start, self.submit, self.shutdown, self.join = loop.start, loop.submit, loop.shutdown, loop.join
        self._runner = SessionRunner(self.session_message.emit)
        self._checks = CheckErrand(self.check_done.emit)
        self.nodes: tuple[KnownNode, ...] = ()
        """Those in reach, as the loop knows them."""
        self._leaves = False
        self._surveyed: set[tuple[str, str]] = set()
        self.models = ModelBridge(self.submit, lambda: self.services.models(self.home), self)
        self.settings = SettingsBridge(
            home, self.submit, lambda: self.services.models(self.home), self._runner.send, self
        )

    # Called from the window's thread ------------------------------------------------------------------------------

    def start_session(self, plan: Plan, nodes: Sequence[KnownNode]) -> None:
        """Start ``plan``; what becomes of it arrives as session messages, the last of them ``Failed`` or ``Ended``."""
        self.submit(self._begin_session(plan, tuple(nodes)))

    def resplit(self, plan: Plan, nodes: Sequence[KnownNode]) -> None:
        """Have the running session go over to ``plan``; session messages tell what becomes of it."""
        self.submit(self._runner.send(Resplit(plan, tuple(nodes))))

    def choose_model(self, wanted: ModelOrder | Path | None) -> None:
        """Read a model, None for the demo's; ``layout_read`` and ``model_chosen`` follow."""
        self.submit(self._choose(wanted))

    def stop_session(self) -> None:
        """End the session, also while it still starts."""
        self.submit(self._runner.end())

    def ask(self, chat: Chat) -> None:
        """Send a question to the model."""
        self.submit(self._runner.send(chat))

    def cancel(self, request_id: str) -> None:
        """Stop an answer."""
        self.submit(self._runner.send(Cancel(request_id)))

    def pair(self, node: UnpairedNode, code: str) -> None:
        """Pair with a node; ``pairing_over`` follows."""
        self.submit(self._with_trust(lambda errands: errands.pair(node, code)))

    def remove_node(self, node_id: str) -> None:
        """Trust a node no more."""
        self.submit(self._with_trust(lambda errands: errands.trust.remove(node_id)))

    def show_code(self) -> None:
        """Show a code on this machine; ``code_shown`` follows."""
        self.submit(self._with_trust(lambda errands: errands.show_code()))

    def hide_code(self) -> None:
        """Show none any more."""
        self.submit(self._with_trust(lambda errands: errands.hide_code()))

    def add_address(self, place: HostPort) -> None:
        """Look for a node there from now on."""
        self.submit(self._with_trust(lambda errands: errands.trust.add_address(place)))

    def check_network(self) -> None:
        """Look whether other machines can be found; ``network_checked`` follows."""
        self.submit(self._with_machine(lambda errands: errands.check_network()))

    def tell_sharing(self) -> None:
        """Look whether this machine is shared at login; ``sharing_told`` follows."""
        self.submit(self._with_machine(lambda errands: errands.tell_sharing()))

    def share(self, on: bool) -> None:
        """Share it at login, or no longer; ``sharing_told`` follows."""
        self.submit(self._with_machine(lambda errands: errands.share(on=on)))

    def set_memory_cap(self, node: KnownNode, cap_bytes: int | None) -> None:
        """Pomona may use at most so much of the node's memory; what the node then says arrives as always."""
        self.submit(self._set_memory_cap(node, cap_bytes))

    def check(self, plan: Plan) -> None:
        """Compare ``plan`` with the whole model, on this machine; ``check_done`` follows."""
        self.submit(self._check(plan))

    def cancel_check(self) -> None:
        """End the check."""
        self.submit(self._checks.end())

    @property
    def running(self) -> bool:
        return self._loop.running

    def leave_session(self) -> None:
        """When everything ends, let the session go on."""
        self._leaves = True

    # Runs in the thread of the loop -------------------------------------------------------------------------------

    async def _main(self, stop: asyncio.Event) -> None:
        try:
            services = self._services or real_services()
        except Exception as error:  # noqa: BLE001  a broken installation must show in the window
            self._loop.report(error)
            await stop.wait()
            return
        self._services = services
        behind = asyncio.create_task(self._loop.guarded(self._start_behind()))
        self._loop.spawn(self._begin(services))
        self.models.refresh()
        watcher = services.watch(self.home, self._on_nodes, self.unpaired_changed.emit)
        starting = asyncio.create_task(self._loop.guarded(watcher.start()))
        await stop.wait()
        await self._loop.guarded(self._runner.leave() if self._leaves else self._runner.end())
        await self._checks.end()
        await self.models.end()
        await self._runner.all_closed()
        await asyncio.wait({starting, behind})  # what is half up cannot be closed
        await self._loop.guarded(watcher.close())

    async def _start_behind(self) -> None:
        if self._behind is not None:
            await asyncio.to_thread(self._behind)

    def _on_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        self.nodes = nodes
        self.nodes_changed.emit(nodes)
        self._loop.spawn(self.models.set_nodes(nodes))
        places = {(node.resources.node_id, node.host) for node in nodes}
        if places != self._surveyed and not self._runner.busy:
            self._surveyed = places
            self._loop.spawn(self._survey(nodes))

    async def _survey(self, nodes: tuple[KnownNode, ...]) -> None:
        self.links_changed.emit(await self.services.survey(self.home, nodes))

    async def _begin(self, services: Services) -> None:
        """Go on with the session that outlived another window; else read the model that was given."""
        running = await asyncio.to_thread(services.find_session, self.home)
        if running is None:
            if self.model_folder is not None or self._demo:
                await self._choose(self.model_folder)
            return
        await self._choose(Path(running.model_folder))
        self.session_found.emit(running)
        self._runner.begin(lambda: services.attach(self.home, running))

    async def _choose(self, wanted: ModelOrder | Path | None) -> None:
        services = self.services
        self.model_reading.emit(wanted.name if wanted is not None else "the demo model")
        try:
            if wanted is None:
                folder = await asyncio.to_thread(services.demo_model)
            elif isinstance(wanted, ModelOrder):
                folder = await self.models.folder(wanted)
            else:
                folder = await asyncio.to_thread(folder_of, wanted)
            layout = await asyncio.to_thread(services.read_layout, folder)
        except Exception:
            self.model_reading.emit("")
            raise
        self.model_folder = folder
        self.layout_read.emit(layout)
        self.model_chosen.emit(str(folder))
        self.checks_read.emit(await asyncio.to_thread(services.known_checks, folder))
        await self.models.note_opened(folder)

    async def _check(self, plan: Plan) -> None:
        assert self.model_folder is not None  # a plan is one of a model
        await self._checks.run(self.services.check(self.model_folder, plan))

    async def _set_memory_cap(self, node: KnownNode, cap_bytes: int | None) -> None:
        await self.services.set_memory_cap(self.home, node, cap_bytes)

    @property
    def services(self) -> Services:
        """Once the loop runs."""
        assert self._services is not None  # the window only wants what it was told of by them
        return self._services

    async def _begin_session(self, plan: Plan, nodes: tuple[KnownNode, ...]) -> None:
        services, folder = self.services, self.model_folder
        assert folder is not None  # a plan is one of a model
        preferences = self.settings.preferences
        self._runner.begin(lambda: services.start_session(plan, folder, nodes, self.home, preferences))

    async def _with_trust(self, does: Callable[[TrustErrands], Awaitable[None]]) -> None:
        trust = self.services.trust(self.home)
        await does(TrustErrands(trust, self.pairing_over.emit, self.code_shown.emit))

    async def _with_machine(self, does: Callable[[MachineErrands], Awaitable[None]]) -> None:
        machine = self.services.machine(self.home)
        await does(MachineErrands(machine, self.network_checked.emit, self.sharing_told.emit))
