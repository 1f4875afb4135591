"""Random actions of a person and of a cluster, seeded: no exception, no warning of Qt, nothing left over."""

import gc
import random

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QMenu

from gui import samples
from gui.appearance import Choice
from gui.session import Phase
from runtime.cluster.messages import Ended, Failed, PlanRefused, Recovering, Text

KEYS = (
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_Tab,
    Qt.Key.Key_Escape,
    Qt.Key.Key_Space,
    Qt.Key.Key_Return,
    Qt.Key.Key_Delete,
)
MODIFIERS = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.AltModifier)
LEFT = Qt.MouseButton.LeftButton


class Monkey:
    def __init__(self, window, seed):
        self.window = window
        self.random = random.Random(seed)
        self.cluster = samples.virtual_nodes()
        self.actions = [
            self.press_a_button,
            self.press_a_button,
            self.trigger_a_menu_entry,
            self.press_keys,
            self.drag_a_boundary,
            self.drag_a_card,
            self.write,
            self.choose_a_tab,
            self.nodes_change,
            self.model_changes,
            self.session_speaks,
            self.session_speaks,
            self.resize,
            self.change_the_appearance,
        ]

    def act(self):
        self.random.choice(self.actions)()
        QApplication.processEvents()
        self.close_dialogs()
        if not self.window.isVisible():
            self.window.showNormal()

    def close_dialogs(self):
        for dialog in self.window.findChildren(QDialog):
            if dialog.isVisible() and self.random.random() < 0.6:
                dialog.reject()
        for menu in self.window.findChildren(QMenu):
            menu.hide()

    def press_a_button(self):
        buttons = [
            one
            for one in self.window.findChildren(QAbstractButton)
            if one.isVisible() and one.isEnabled() and not one.objectName().startswith("qt_")
        ]
        button = self.random.choice(buttons)
        if getattr(button, "menu", lambda: None)() is None:  # a menu of a button would wait for its end
            button.click()

    def trigger_a_menu_entry(self):
        entries = [
            entry
            for entry in self.window.menus.all_actions()
            if entry.isEnabled() and entry not in {self.window.menus.close, self.window.menus.quit}
        ]
        self.random.choice(entries).trigger()

    def press_keys(self):
        there = QApplication.focusWidget() or self.window
        for _ in range(self.random.randint(1, 4)):
            QTest.keyClick(there, self.random.choice(KEYS), self.random.choice(MODIFIERS))

    def drag_a_boundary(self):
        handles = [handle for handle in self.window.editor.handles if handle.isVisible()]
        if handles:
            self.drag(self.random.choice(handles), QPoint(5, 20))

    def drag_a_card(self):
        if self.window.editor.cards and self.window.editor.isVisible():
            self.drag(self.random.choice(self.window.editor.cards), QPoint(40, 40))

    def drag(self, widget, start):
        QTest.mousePress(widget, LEFT, pos=start)
        for _ in range(self.random.randint(0, 3)):
            QTest.mouseMove(widget, start + QPoint(self.random.randint(-500, 500), self.random.randint(-80, 80)))
        if self.random.random() < 0.2:
            QTest.keyClick(widget, Qt.Key.Key_Escape)
        QTest.mouseRelease(widget, LEFT, pos=start)

    def write(self):
        box = self.window.chat.composer.box
        if box.isVisible():
            box.setPlainText(self.random.choice(("Why?", "<b>&amp;", "a\n\n```\nb", "x" * 300, "  ")))
            QTest.keyClick(box, Qt.Key.Key_Return)

    def choose_a_tab(self):
        self.window.live.show_tab(self.random.choice(("speed", "stages", "memory")))

    def nodes_change(self):
        everyone = (*samples.virtual_nodes(), *samples.macs(), *samples.many_nodes(16))
        count = self.random.choice((0, 1, 2, 3, 3, 3, 4, 16))
        self.window.show_nodes(tuple(self.random.sample(everyone, count)))
        self.window.show_unpaired(samples.unpaired(*["Attic", "Cellar"][: self.random.randint(0, 2)]))

    def model_changes(self):
        if not self.window.store.session.active:
            layers = self.random.choice((1, 30, 200))
            model = self.random.choice((samples.SMALL_MODEL, samples.LARGE_MODEL, samples.of_layers(layers, 2**20)))
            self.window.show_layout(model)

    def session_speaks(self):
        session, plan = self.window.store.session, self.window.store.session.plan
        if plan is None or not session.active:
            self.window.start_session()
            return
        if session.phase is Phase.STOPPING:
            self.window.receive(Ended())
            return
        node = plan.stages[0].ranks[0]
        says = [
            lambda: [samples.ready(self.window.store.pending or plan)],
            lambda: samples.loading(plan, [("loading", self.random.random())] * len(plan.ranks)),
            lambda: samples.throughput(2.0),
            lambda: samples.counters(plan, 2.0),
            lambda: [Recovering(f"{node.node_name} is gone.", node.node_id)],
            lambda: [PlanRefused("It cannot be.")],
            self.answers,
            self.answers,
            lambda: [Failed(f"{node.node_name} is gone.", node.node_id)],
        ]
        for message in self.random.choice(says)():
            self.window.receive(message)

    def answers(self):
        requests = [one.request_id for chat in self.window.chat.book.conversations for one in chat.exchanges]
        if not requests:
            return []
        request = self.random.choice(requests)
        text = Text(request, self.random.choice(("<think>", "</think>", "**a**\n\n", "| a |\n|---|\n", "b ")), (1,))
        return [text, samples.finished(request)] if self.random.random() < 0.3 else [text]

    def resize(self):
        self.window.resize(self.random.randint(1000, 1500), self.random.randint(690, 1000))

    def change_the_appearance(self):
        self.window.appearance.choose(self.random.choice(list(Choice)))


@pytest.mark.qt_log_ignore("^This plugin does not support", extend=True)  # of the platform without a screen
@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 150), pytest.param(2, 2000, marks=[pytest.mark.matrix, pytest.mark.timeout(900)])],
)
def test_random_actions_do_no_harm(window, seed, count):
    window.live.load_chart()
    monkey = Monkey(window, seed)
    for _ in range(count):
        monkey.act()
        store = window.store
        assert len(store.split.counts) == len(store.nodes) or store.layout is None
        if store.layout is not None and store.nodes:
            assert store.split.layer_count == len(store.layout.layer_bytes)
    for dialog in window.findChildren(QDialog):
        dialog.reject()
    gc.collect()
