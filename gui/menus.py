"""The menu bar. Everything that a button does is here too, with its key; macOS moves About and Quit by their roles."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from gui.appearance import Choice
from gui.deck import ENLARGE, REDUCE
from gui.session import Phase
from gui.split.strip_view import GOAL_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gui.status import Status
    from gui.store import Store
    from gui.window import Window
    from runtime.cluster.nodes import KnownNode, UnpairedNode
    from runtime.planning.values import Goal

CHECK, CANCEL_CHECK = "Check This Split", "Cancel Check"
_Role = QAction.MenuRole
_GOAL_KEYS: dict[Goal, str] = {"chat": "Ctrl+1", "requests": "Ctrl+2", "even": "Ctrl+E", "room": "Ctrl+3"}


class Menus:
    """Makes the window's menus and keeps their actions."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._locked: str | None = None
        bar, chat = window.menuBar(), window.chat
        file = bar.addMenu("&File")
        self.about = self._action(file, "About Pomona", window.show_about, role=_Role.AboutRole)
        self.settings = self._action(file, "Settings…", window.settings.open, "Ctrl+,", _Role.PreferencesRole)
        self.close = self._action(file, "Close Window", window.close, QKeySequence.StandardKey.Close)
        self.quit = self._action(file, "Quit Pomona", window.close, QKeySequence.StandardKey.Quit, _Role.QuitRole)
        edit = bar.addMenu("&Edit")
        self._stack = window.store.undo_stack
        self.undo = self._action(edit, "Undo", window.store.undo, QKeySequence.StandardKey.Undo)
        self.redo = self._action(edit, "Redo", window.store.redo, QKeySequence.StandardKey.Redo)
        model = bar.addMenu("&Model")
        model.addMenu(window.models.menu)
        model.addSeparator()
        self.start = self._action(model, "Start", window.start_session, "Ctrl+R")
        self.stop = self._action(model, "Stop", window.stop_session, "Ctrl+.")
        model.addSeparator()
        self.goals = [
            self._action(model, GOAL_NAMES[goal], partial(window.store.choose_goal, goal), key)
            for goal, key in _GOAL_KEYS.items()
        ]
        self.apply = self._action(model, "Apply Split", window.desk.apply, "Ctrl+Return")
        self.compare = self._action(model, "Compare Splits…", window.comparison.open, "Ctrl+Shift+C")
        self.revert = self._action(model, "Back to What Runs", window.store.revert_pending, "Ctrl+Backspace")
        model.addSeparator()
        self.boundary = self._action(model, "Next Boundary", window.focus_next_boundary, "Ctrl+B")
        self.check = self._action(model, CHECK, window.desk.check_or_cancel, "Ctrl+K")
        model.addSeparator()
        self.chat = self._action(model, "Write to the Model", partial(window.show_pane, "chat"), "Ctrl+L")
        self.new_chat = self._action(model, "New Chat", self._chatting(chat.new_chat), QKeySequence.StandardKey.New)
        self.regenerate = self._action(model, "Regenerate Answer", self._chatting(chat.regenerate), "Ctrl+Shift+R")
        self.edit_question = self._action(model, "Edit Last Question", self._chatting(chat.edit_last), "Ctrl+Shift+E")
        model.addSeparator()
        self.clients = self._action(model, "Connect a Program…", window.show_clients)
        nodes = bar.addMenu("&Nodes")
        self.code = self._action(nodes, "Show Pairing Code…", window.trust.open_code)
        self.address = self._action(nodes, "Add by Address…", window.trust.open_address)
        self.this_mac = self._action(nodes, "This Mac and the Network…", window.trust.open_this_mac)
        nodes.addSeparator()
        self.pair = nodes.addMenu("Pair With")
        self.remove = nodes.addMenu("Remove")
        self._listed: dict[QMenu, tuple[object, ...]] = {}
        self.show_unpaired(())
        self.show_nodes(())
        self._add_view(bar.addMenu("&View"))
        window_menu = bar.addMenu("&Window")
        self._action(window_menu, "Minimise", window.showMinimized, "Ctrl+M")
        self._action(window_menu, "Zoom", self._on_zoom)

    def _add_view(self, view: QMenu) -> None:
        """The panes with their keys, and the appearance."""
        window = self._window
        deck = window.deck
        self._panes = QActionGroup(window)
        for number, (name, title) in enumerate(deck.titles.items(), start=1):
            action = self._action(view, title, partial(window.show_pane, name), f"Ctrl+Alt+{number}")
            action.setCheckable(True)
            action.setData(name)
            self._panes.addAction(action)
        deck.shown.connect(self._on_pane)
        self._on_pane(deck.current)
        self.enlarge = self._action(view, ENLARGE, deck.enlarge.toggle, "Ctrl+Shift+Return")
        deck.enlarged_changed.connect(self._on_enlarged)
        view.addSeparator()
        appearance = view.addMenu("Appearance")
        self._choices = QActionGroup(window)
        for choice in Choice:
            action = self._action(appearance, choice.value, self._on_appearance)
            action.setCheckable(True)
            action.setChecked(choice is window.appearance.choice)
            action.setData(choice.name)
            self._choices.addAction(action)
        window.appearance.chosen.connect(self._show_appearance)

    def sync(self, status: Status, phase: Phase, goal_reason: str | None) -> None:
        """Enable what can be done now, and say of the rest why it cannot."""
        _allow(self.start, None if status.can_start else status.words)
        _allow(self.stop, None if phase in {Phase.LOADING, Phase.RUNNING} else "No model runs")
        for action in self.goals:
            _allow(action, goal_reason)
        serving = self._window.store.session.serving
        _allow(self.clients, None if serving is not None else "Start the model first: programs reach it while it runs")
        self._locked = self._window.store.locked
        self._sync_undo()

    def show_unpaired(self, nodes: tuple[UnpairedNode, ...]) -> None:
        """List the machines that could be paired."""
        trust = self._window.trust
        entries = [(node.name, partial(trust.open_pairing, node)) for node in nodes]
        self._list(self.pair, nodes, entries, "No machine is there that is not paired")

    def show_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """List the nodes that can be removed: a virtual one goes with what started it."""
        real = tuple((one.resources.node_id, one.resources.name) for one in nodes if not one.resources.virtual)
        entries = [(name, partial(self._window.trust.remove_wanted.emit, node_id)) for node_id, name in real]
        self._list(self.remove, real, entries, "No node is paired with this machine")

    def _list(
        self, menu: QMenu, key: tuple[object, ...], entries: Sequence[tuple[str, Callable[[], object]]], nothing: str
    ) -> None:
        """Fill a menu anew if what it lists has changed; without entries it says so."""
        if self._listed.get(menu) == key:
            return
        self._listed[menu] = key
        menu.clear()
        for name, does in entries:
            self._action(menu, name.replace("&", "&&"), does)
        if not entries:
            _allow(self._action(menu, nothing, _nothing), nothing)

    def all_actions(self) -> list[QAction]:
        """Every entry of every menu."""
        found: list[QAction] = []
        menus = [action.menu() for action in self._window.menuBar().actions()]
        while menus:
            menu = menus.pop()
            for action in menu.actions() if isinstance(menu, QMenu) else ():
                if action.menu() is not None:
                    menus.append(action.menu())
                elif not action.isSeparator():
                    found.append(action)
        return found

    def sync_pending(self, store: Store) -> None:
        """Offer to apply the split that is shown, if it is not the one that runs."""
        nothing = "The split that is shown is the one that runs" if store.session.active else "No model runs"
        refused = store.preview.refusal if store.preview and store.is_edited else None
        for action in (self.apply, self.compare):
            _allow(action, None if store.pending is not None else refused or nothing)
        _allow(self.revert, None if store.is_edited else nothing)

    def sync_check(self, status: Status, phase: Phase, *, running: bool) -> None:
        """Offer to check the split, or to end the check that runs."""
        self.check.setText(CANCEL_CHECK if running else CHECK)
        reason = None if status.can_start else status.words
        if phase is not Phase.IDLE:
            reason = "Stop the model first: a check needs its memory"
        _allow(self.check, None if running else reason)

    def _sync_undo(self) -> None:
        stack = self._stack
        for action, verb, possible, text in (
            (self.undo, "Undo", stack.canUndo(), stack.undoText()),
            (self.redo, "Redo", stack.canRedo(), stack.redoText()),
        ):
            action.setText(f"{verb} {text}" if possible else verb)
            _allow(action, self._locked or (None if possible else f"Nothing to {verb.lower()}"))

    def _action(
        self,
        menu: QMenu,
        text: str,
        does: Callable[[], object],
        key: QKeySequence.StandardKey | str | None = None,
        role: QAction.MenuRole = _Role.NoRole,
    ) -> QAction:
        action = QAction(text, self._window)
        action.setMenuRole(role)  # without one, macOS guesses from the words
        if key is not None:
            action.setShortcut(QKeySequence(key))
        action.triggered.connect(does)
        menu.setToolTipsVisible(True)
        menu.addAction(action)
        return action

    def _chatting(self, does: Callable[[], None]) -> Callable[[], None]:
        """The same, where it can be seen."""

        def seen() -> None:
            self._window.deck.show_pane("chat")
            does()

        return seen

    def _on_pane(self, name: str) -> None:
        for action in self._panes.actions():
            action.setChecked(action.data() == name)

    def _on_enlarged(self, on: bool) -> None:
        self.enlarge.setText(REDUCE if on else ENLARGE)

    def _on_zoom(self) -> None:
        if self._window.isMaximized():
            self._window.showNormal()
        else:
            self._window.showMaximized()

    def _show_appearance(self, chosen: Choice) -> None:
        for action in self._choices.actions():
            action.setChecked(action.data() == chosen.name)

    def _on_appearance(self) -> None:
        checked = self._choices.checkedAction()
        self._window.appearance.choose(Choice[checked.data()])


def _nothing() -> None:
    """What an entry does that only says something."""


def _allow(action: QAction, reason: str | None) -> None:
    """Enable an action, or disable it with its reason in the tooltip."""
    action.setEnabled(reason is None)
    action.setToolTip(reason or "")
