"""The main window: puts header, split editor, live numbers and panes together and passes wishes on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QSplitter, QVBoxLayout, QWidget

from gui.bench.keeper import BenchKeeper
from gui.bench.pane import BenchPane
from gui.chat.compare import Comparison
from gui.chat.pane import ChatPane
from gui.closing import CloseQuestion
from gui.deck import Deck
from gui.desk import SessionDesk
from gui.header import Header
from gui.logs.pane import LogPane
from gui.menus import Menus
from gui.models.chooser import ModelChooser
from gui.models.desk import ModelsDesk
from gui.models.pane import ModelsPane
from gui.models.welcome import Welcome
from gui.nodes.keeper import TrustKeeper
from gui.nodes.memory_keeper import MemoryKeeper
from gui.nodes.nearby import NearbyStrip
from gui.plots.live import LivePane
from gui.session import Phase
from gui.settings.keeper import SettingsKeeper
from gui.split.editor import SplitEditor
from gui.split.strip import PlanStrip
from gui.status import status
from gui.store import Store
from gui.widgets.banner import Banner
from gui.wishes import join_wishes
from runtime.cluster.messages import (
    Answered,
    Finished,
    Rejected,
    ServeRefused,
    ServerMessage,
    Statistics,
    Text,
    Throughput,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QCloseEvent

    from gui.appearance import Appearance
    from gui.checks import Known
    from gui.theme import Theme
    from runtime.check.result import CheckResult
    from runtime.cluster.nodes import KnownNode, UnpairedNode
    from runtime.cluster.running_note import RunningNote
    from runtime.models.layout import ModelLayout

_CHAT_BLOCKED = {
    Phase.IDLE: "Start the model to chat",
    Phase.LOADING: "The model is loading",
    Phase.RUNNING: None,
    Phase.STOPPING: "The session is stopping",
}

_BENCH_RUNS = "A benchmark runs, which an answer would disturb"


class Window(QMainWindow):
    """Shows the store and turns what a person does into wishes; who can fulfil them connects to the signals.

    Signals:
        session_wanted: ``(Plan, tuple[KnownNode, ...])``: start this plan on these nodes.
        resplit_wanted: ``(Plan, tuple[KnownNode, ...])``: the running session shall go over to this plan.
        stop_wanted: End the session.
        check_wanted: A :class:`runtime.planning.plan.Plan` to compare with the whole model.
        check_cancel_wanted: The check shall end.
        asked: A :class:`runtime.cluster.messages.Chat` for the model.
        cancel_wanted: The request id of an answer to stop.
        leave_wanted: The window is about to close, and the session shall go on.
        closed: The person closed the window, and confirmed it if a session was running.
    """

    session_wanted = Signal(object, object)
    resplit_wanted = Signal(object, object)
    stop_wanted = Signal()
    check_wanted = Signal(object)
    check_cancel_wanted = Signal()
    asked = Signal(object)
    cancel_wanted = Signal(str)
    leave_wanted = Signal()
    closed = Signal()

    def __init__(self, appearance: Appearance, *, ask_before_close: bool = True) -> None:
        super().__init__()
        self.appearance = appearance
        self.store = Store(self)
        self._ask_before_close = ask_before_close
        self._close_confirmed = False
        self._question = CloseQuestion(self)
        self._question.confirmed.connect(self.close_now)
        self._question.leave_wanted.connect(self._on_leave)
        theme = appearance.theme
        self.setWindowTitle("Pomona")
        self.header = Header(theme)
        self.banner = Banner(theme)
        self.editor = SplitEditor(theme)
        self.nearby = NearbyStrip(theme)
        self.trust = TrustKeeper(self)
        self.memory = MemoryKeeper(self)
        self.desk = SessionDesk(self)
        self.strip = PlanStrip(theme)
        self.welcome = Welcome(theme)
        self.models = ModelChooser(self)
        self.live = LivePane(theme)
        self.chat = ChatPane(theme)
        self.deck = Deck(theme)
        self.deck.add("chat", "Chat", self.chat)
        self.models_pane = ModelsPane(theme)
        self.deck.add("models", "Models", self.models_pane)
        self.bench = BenchPane(theme)
        self.deck.add("bench", "Benchmark", self.bench)
        self.benching = BenchKeeper(self)
        self.logs = LogPane(theme)
        self.deck.add("log", "Log", self.logs)
        self.models_desk = ModelsDesk(self)
        self.settings = SettingsKeeper(self)
        self.comparison = Comparison(self)
        self._lay_out()
        self.live.stages.hues = self.live.memory.hues = self.store.hues
        self.menus = Menus(self)
        self.header.change.setMenu(self.models.menu)
        join_wishes(self)
        self.store.changed.connect(self._on_changed)
        self.deck.enlarged_changed.connect(self._on_changed)
        self.benching.busy_changed.connect(self._on_changed)
        self.appearance.theme_changed.connect(self._on_theme_changed)
        self._on_changed()
        self.resize(1180, 820)
        self.setMinimumSize(1000, 690)

    def _lay_out(self) -> None:
        panes = self.panes = QSplitter(Qt.Orientation.Horizontal)
        panes.addWidget(self.live)
        panes.addWidget(self.deck)
        panes.setStretchFactor(0, 5)
        panes.setStretchFactor(1, 7)
        panes.setHandleWidth(12)
        panes.setChildrenCollapsible(False)
        panes.setSizes([500, 700])
        below = QVBoxLayout()
        below.setContentsMargins(24, 8, 24, 18)
        below.addWidget(panes)
        strip = QVBoxLayout()
        strip.setContentsMargins(24, 0, 24, 0)
        strip.addWidget(self.banner)
        beside = QVBoxLayout()
        beside.setContentsMargins(24, 2, 24, 2)
        beside.addWidget(self.nearby)
        self._upper = QWidget()
        upper = QVBoxLayout(self._upper)
        upper.setContentsMargins(0, 0, 0, 0)
        upper.setSpacing(4)
        upper.addWidget(self.editor)
        upper.addWidget(self.strip)
        upper.addLayout(beside)
        middle = QWidget()
        middle.setAccessibleName("Pomona")
        middle.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # a click beside everything lets go of a boundary
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addLayout(strip)
        column.addWidget(self.welcome, 1)
        column.addWidget(self._upper)
        column.addLayout(below, 1)
        self.setCentralWidget(middle)
        middle.setFocus()  # so that no control looks chosen before the person has chosen

    # From the bridge ----------------------------------------------------------------------------------------------

    @Slot(object)
    def show_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """The nodes in reach, or what they have, changed."""
        self.store.set_nodes(nodes)

    @Slot(object)
    def show_unpaired(self, nodes: tuple[UnpairedNode, ...]) -> None:
        """The machines that could be paired changed."""
        self.nearby.show_nodes(nodes)
        self.menus.show_unpaired(nodes)

    @Slot(object)
    def show_layout(self, layout: ModelLayout) -> None:
        """The model was read."""
        self.deck.set_enlarged(on=False)
        self.store.set_layout(layout)

    @Slot(object)
    def adopt_session(self, running: RunningNote) -> None:
        """A session that an earlier window started runs."""
        self.store.adopt_session(running.plan, running.nodes)

    @Slot(object)
    def receive(self, message: ServerMessage) -> None:
        """The controller said something."""
        match message:
            case Throughput():
                self.live.add(message)
            case Statistics():
                self.live.add_counters(message)
            case Text() | Rejected() | Answered():
                self.chat.receive(message)
            case ServeRefused(reason):
                self.show_trouble(reason)
            case Finished():
                self.chat.receive(message)
                self.store.receive(message)
            case _:
                self.store.receive(message)
                self.desk.receive(message)

    @Slot(object)
    def show_checks(self, known: Known) -> None:
        """What earlier checks of this model found."""
        self.store.set_checks(replace(self.store.checks, known=known))

    @Slot(object)
    def show_check_result(self, result: CheckResult | None) -> None:
        """A check is over; without a result it was cancelled, or its trouble is told otherwise."""
        self.desk.show_check_result(result)

    @Slot(str)
    def show_trouble(self, words: str) -> None:
        """Something failed that belongs to no session."""
        self.banner.say(words)

    # What a person does -------------------------------------------------------------------------------------------

    def start_session(self) -> None:
        """Launch the plan that is shown."""
        self.desk.start()

    def stop_session(self) -> None:
        """End the session, or give up loading."""
        self.desk.stop()

    def focus_next_boundary(self) -> None:
        """Give the keyboard to the next boundary, also on a Mac whose Tab key stops at text fields only."""
        handles = self.editor.handles
        if handles:
            focused = next((index for index, handle in enumerate(handles) if handle.hasFocus()), -1)
            handles[(focused + 1) % len(handles)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_pane(self, name: str) -> None:
        """Show a pane and give it the keyboard; without a model there is no split that it could lie under."""
        self.deck.focus_pane(name)
        if self.store.layout is None:
            self.deck.set_enlarged(on=True)

    def show_clients(self) -> None:
        """Settings for programs that are to use the model."""
        from gui.clients import ClientsDialog  # few ever open it

        if (serving := self.store.session.serving) is not None:
            ClientsDialog(serving, self.appearance.theme, self).open()

    def show_about(self) -> None:
        """Say what this is and whose work it stands on."""
        from gui.about import AboutDialog  # reads the licences of all that is installed

        AboutDialog(self.appearance.theme, self).open()

    # Views --------------------------------------------------------------------------------------------------------

    def _on_changed(self) -> None:
        store = self.store
        now = status(store.layout, store.preview, store.session, edited=store.is_edited)
        whole = self.deck.enlarged
        self.welcome.setVisible(store.layout is None and not whole)
        self.editor.setVisible(store.layout is not None)
        self._upper.setVisible(not whole)
        self.live.setVisible(not whole)
        self.panes.setVisible(store.layout is not None or whole)
        self.models.lock(locked=store.session.active)
        self.editor.set_view(store.editor_view)
        self.strip.show_view(store.strip_view)
        self.strip.server.show_serving(store.session.serving if store.session.phase is Phase.RUNNING else None)
        self.header.show_store(store, now)
        running = store.session.plan if store.session.phase is Phase.RUNNING else None
        self.chat.set_split(" | ".join(map(str, store.running_counts)), running.context_tokens if running else 0)
        self.chat.set_blocked(_BENCH_RUNS if self.benching.busy else _CHAT_BLOCKED[store.session.phase])
        self.live.show_session(store.session, running=store.session.phase is Phase.RUNNING)
        self.menus.sync(now, store.session.phase, goal_reason=self.header.goal_reason)
        self.menus.show_nodes(store.nodes)
        self.memory.show_nodes(store.nodes)
        self.menus.sync_check(now, store.session.phase, running=store.checks.running is not None)
        self.menus.sync_pending(store)
        self.comparison.follow()
        self.benching.follow()

    def _on_theme_changed(self, theme: Theme) -> None:
        upper = (self.header, self.banner, self.welcome, self.editor, self.strip, self.nearby)
        for part in (*upper, self.live, self.deck):
            part.set_theme(theme)

    # Closing ------------------------------------------------------------------------------------------------------

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.store.session.active and self._ask_before_close and not self._close_confirmed:
            event.ignore()
            nodes = self.store.nodes
            running = self.store.session.phase is Phase.RUNNING
            self._question.ask(can_leave=running and not any(node.resources.virtual for node in nodes))
            return
        event.accept()
        self.trust.close_all()
        self.memory.close()
        self.settings.close()
        self.closed.emit()

    def _on_leave(self) -> None:
        self.leave_wanted.emit()
        self.close_now()

    def close_now(self) -> None:
        """Close without a question: the system, or the terminal, asked."""
        self._close_confirmed = True
        self.close()
