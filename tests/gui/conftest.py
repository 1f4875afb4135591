"""A dressed application without a screen, a window that ends clean, and scripted services behind a real bridge."""

import os
import threading
from collections.abc import Iterator

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from gui import samples
from gui.app import make_application
from gui.appearance import Appearance, Choice
from gui.window import Window


@pytest.fixture(scope="session")
def dressed(qapp):
    """Fonts and style as in the product."""
    return make_application([])


@pytest.fixture
def appearance(dressed) -> Appearance:
    return Appearance(Choice.DARK)


@pytest.fixture
def window(qtbot, appearance) -> Iterator[Window]:
    """A whole window that is shown, with no node and no model yet."""
    made = Window(appearance, ask_before_close=False)
    with qtbot.waitExposed(made):
        made.show()
    yield made
    made.close()
    made.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def demo_window(window: Window) -> Window:
    """The same with the demo's model and three virtual nodes."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())
    return window


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("pomona")]
    assert not left, f"threads that a test left behind: {left}"


@pytest.fixture(autouse=True)
def no_window_is_left(dressed) -> Iterator[None]:
    yield
    QApplication.processEvents()
    left = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    assert not left, f"windows that a test left open: {left}"
