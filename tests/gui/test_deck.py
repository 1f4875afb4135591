"""The panes that share a place: switched by the tabs, by the menu and by keys, and enlarged."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from gui import samples
from gui.deck import ENLARGE, REDUCE, Deck
from gui.theme import DARK, LIGHT
from gui.widgets.panel import Panel


class Note(Panel):
    def __init__(self, title):
        super().__init__(title, DARK)
        self.field = QLineEdit()
        self.field.setAccessibleName(title)
        self.body.addWidget(self.field)
        self.setFocusProxy(self.field)


@pytest.fixture
def deck(qtbot, dressed):
    made = Deck(DARK)
    for name in ("one", "two"):
        made.add(name, name.title(), Note(name))
    made.resize(500, 200)
    with qtbot.waitExposed(made):
        made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    yield made
    made.close()
    made.deleteLater()


def test_a_click_on_a_tab_shows_its_pane(qtbot, deck):
    assert deck.current == "one"
    with qtbot.waitSignal(deck.shown) as told:
        QTest.mouseClick(deck.switch.segments["two"], Qt.MouseButton.LeftButton)
    assert told.args == ["two"]
    assert deck.current == "two"


def test_a_pane_that_is_asked_for_has_the_keyboard(deck):
    deck.focus_pane("two")
    there = QApplication.focusWidget()
    assert there is not None
    assert there.accessibleName() == "two"
    assert deck.switch.segments["two"].isChecked()


def test_the_theme_reaches_panes_that_are_not_shown(deck):
    deck.set_theme(LIGHT)
    assert all(note.theme is LIGHT for note in deck.findChildren(Note))


def test_the_menu_lists_every_pane_with_a_key(demo_window):
    names = list(demo_window.deck.titles)
    for number, name in enumerate(names, start=1):
        QTest.keySequence(demo_window, QKeySequence(f"Ctrl+Alt+{number}"))
        assert demo_window.deck.current == name


def test_an_enlarged_pane_has_the_place_of_the_split_and_gives_it_back(demo_window):
    window = demo_window
    assert window.menus.enlarge.text() == ENLARGE
    window.menus.enlarge.trigger()
    assert window.chat.isVisible()
    assert not window.editor.isVisible()
    assert not window.live.isVisible()
    assert window.deck.enlarge.accessibleName() == window.menus.enlarge.text() == REDUCE
    QTest.mouseClick(window.deck.enlarge, Qt.MouseButton.LeftButton)
    assert window.editor.isVisible()
    assert window.live.isVisible()


def test_without_a_model_a_pane_takes_the_place_of_the_welcome_until_there_is_one(window):
    window.show_pane("chat")
    assert window.chat.isVisible()
    assert not window.welcome.isVisible()
    window.menus.enlarge.trigger()
    assert window.welcome.isVisible()
    window.show_pane("chat")
    window.show_layout(samples.SMALL_MODEL)
    assert window.editor.isVisible()
