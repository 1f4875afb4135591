"""Settings for other programs, beside the server's address."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gui import samples
from gui.clients import ClientsDialog
from runtime.cluster.messages import Serving


def serve(window, api_key=""):
    window.start_session()
    window.receive(samples.ready(window.store.session.plan))
    window.receive(Serving("http://127.0.0.1:52520/v1", "smol", api_key))


def opened(window):
    (dialog,) = window.findChildren(ClientsDialog)
    return dialog


def test_every_program_has_settings_to_copy(demo_window):
    serve(demo_window, "sesame")
    QTest.mouseClick(demo_window.strip.server.connect_button, Qt.MouseButton.LeftButton)
    dialog = opened(demo_window)
    names = [dialog.programs.item(row).text() for row in range(dialog.programs.count())]
    assert {"Claude Code", "Codex", "Continue", "aider", "llm", "curl"} < set(names)
    for row, name in enumerate(names):
        dialog.programs.setCurrentRow(row)
        dialog.copy.click()
        copied = QGuiApplication.clipboard().text()
        assert "127.0.0.1:52520" in copied, name
        assert dialog.where.text().endswith(":")
    assert "sesame" in dialog.text.toPlainText()
    dialog.close()


def test_the_menu_offers_it_while_programs_can_reach_the_model(demo_window):
    assert not demo_window.menus.clients.isEnabled()
    assert "Start the model" in demo_window.menus.clients.toolTip()
    serve(demo_window)
    demo_window.menus.clients.trigger()
    opened(demo_window).close()


def test_the_address_says_that_it_was_copied(qtbot, demo_window):
    serve(demo_window)
    line = demo_window.strip.server
    width = line.copy.width()
    QTest.mouseClick(line.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "http://127.0.0.1:52520/v1"
    assert line.copy.text() == "Copied"
    assert line.copy.width() >= width
    qtbot.waitUntil(lambda: line.copy.text() == "Copy")
