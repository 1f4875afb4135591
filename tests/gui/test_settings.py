"""The settings: each applies at once, is kept for the next window, and says why it cannot be set."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QFileDialog, QPushButton

from gui import samples
from gui.appearance import Choice
from gui.keeper import Keeper
from gui.preferences import Preferences, api_options
from gui.session import Phase
from gui.theme import DARK, LIGHT
from gui.window import Window
from runtime.cluster.messages import Serve
from runtime.server.keys import own_api_key, renew_api_key
from tests.gui.scripted import ScriptedServices, bridged
from tests.gui.test_keyboard import interfaces


def serves(session):
    return [message for message in session.sent if isinstance(message, Serve)]


def choose(pop_up, value):
    """As a person does with the keyboard or the mouse."""
    row = pop_up.findData(value)
    pop_up.setCurrentIndex(row)
    pop_up.activated.emit(row)


@pytest.fixture
def dialog(window):
    window.menus.settings.trigger()
    opened = window.settings.dialog
    yield opened
    window.settings.close()
    QApplication.processEvents()


def test_the_menu_and_its_key_open_them_once(window, dialog):
    assert window.menus.settings.shortcut().toString() == "Ctrl+,"
    dialog.show_page("server")
    window.menus.settings.trigger()
    assert window.settings.dialog is dialog
    assert dialog.switch.segments["server"].isChecked()
    dialog.close()
    assert window.settings.dialog is None


def test_the_appearance_follows_at_once_wherever_it_is_chosen(window, dialog):
    choose(dialog.general.appearance, Choice.LIGHT.name)
    assert window.appearance.theme is LIGHT
    assert window.menus._choices.checkedAction().data() == "LIGHT"
    window.appearance.choose(Choice.DARK)
    assert window.appearance.theme is DARK
    assert dialog.general.appearance.currentData() == "DARK"


def test_a_new_model_is_arranged_as_set_and_one_that_was_arranged_is_left_alone(window, dialog):
    choose(dialog.models.goal, "chat")
    choose(dialog.models.context, 4096)
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    assert window.store.arrangement.goal == "chat"
    assert window.store.arrangement.context_tokens == 4096
    fastest = window.editor.view.counts
    assert sorted(fastest) != [10, 10, 10]
    choose(dialog.models.goal, "even")
    assert window.editor.view.counts == (10, 10, 10)
    assert not window.store.undo_stack.canUndo()
    window.store.move_boundary(0, 3)
    choose(dialog.models.goal, "chat")
    choose(dialog.models.context, 16384)
    assert window.editor.view.counts == (3, 17, 10)
    assert window.store.arrangement.context_tokens == 4096


def test_a_context_longer_than_the_model_was_made_for_is_cut(window):
    window.settings.set_preferences(Preferences(context_tokens=131072))
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())
    assert window.store.arrangement.context_tokens == samples.SMALL_MODEL.context_tokens
    assert window.store.preview.plan is not None


def test_what_is_set_comes_back_in_the_next_window(qtbot, window, appearance, tmp_path):
    keeper = Keeper(window, tmp_path)
    wanted = Preferences("requests", 4096, False, "network", 8080, True)
    window.settings.set_preferences(wanted)
    keeper.save()
    other = Window(appearance, ask_before_close=False)
    qtbot.addWidget(other)
    Keeper(other, tmp_path).restore()
    assert other.settings.preferences == wanted
    assert other.store.usual == wanted


def test_a_session_is_started_as_set_and_its_api_follows(qtbot, window, tmp_path):
    script = ScriptedServices()
    with bridged(window, script) as bridge:
        bridge.settings._home = tmp_path
        window.settings.open_page("server")
        dialog = window.settings.dialog
        dialog.general.keep_running.click()
        qtbot.waitUntil(window.header.start.isEnabled)
        window.start_session()
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        assert script.preferences == Preferences(keep_running=False)

        choose(dialog.server.reach, "network")
        session = script.sessions[0]
        qtbot.waitUntil(lambda: dialog.server.address.text() == "http://192.0.2.1:8080/v1")
        (serve,) = serves(session)
        assert serve.options == api_options(Preferences(reach="network"), tmp_path)
        assert not dialog.server.wants_key.isEnabled()
        assert dialog.server.wants_key.toolTip()

        qtbot.waitUntil(dialog.server.copy.isEnabled)
        dialog.server.copy.click()
        assert QGuiApplication.clipboard().text() == own_api_key(tmp_path)
        dialog.server.renew.click()
        qtbot.waitUntil(lambda: len(serves(session)) == 2)
        assert serves(session)[-1].options.api_key == own_api_key(tmp_path) != serve.options.api_key

        dialog.server.port.setValue(8080)
        dialog.server.port.editingFinished.emit()
        qtbot.waitUntil(lambda: serves(session)[-1].options.port == 8080)
        assert not serves(session)[-1].options.or_any_port
        window.settings.close()


def test_the_first_session_is_started_as_the_last_window_was_set(qtbot, window):
    window.settings.set_preferences(Preferences(keep_running=False))
    script = ScriptedServices()
    with bridged(window, script):
        qtbot.waitUntil(window.header.start.isEnabled)
        window.start_session()
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        assert script.preferences == Preferences(keep_running=False)


def test_token_and_folder_are_kept_by_the_desk_of_models(qtbot, window, tmp_path):
    script = ScriptedServices()
    with bridged(window, script):
        window.settings.open_page("models")
        page = window.settings.dialog.models
        qtbot.waitUntil(lambda: page.folder.text() == "/data/models")
        assert not page.forget.isEnabled()
        assert page.save.toolTip() == "Paste a token first"
        QTest.keyClicks(page.token, "hf_secret")
        QTest.keyClick(page.token, Qt.Key.Key_Return)
        qtbot.waitUntil(page.forget.isEnabled)
        assert script.models.token == "hf_secret"
        assert page.token.text() == ""
        page.forget.click()
        qtbot.waitUntil(lambda: not page.forget.isEnabled())

        page.choose.click()
        folder_dialog = page.findChild(QFileDialog, "models_folder_dialog")
        folder_dialog.fileSelected.emit(str(tmp_path))
        folder_dialog.close()
        qtbot.waitUntil(lambda: page.folder.text() == str(tmp_path))
        page.usual.click()
        qtbot.waitUntil(lambda: script.models.kept_in is None and not page.usual.isEnabled())
        script.models.trouble = "Nothing can be written to /nowhere."
        page.folder_wanted.emit(Path("/nowhere"))
        qtbot.waitUntil(lambda: "Nothing can be written" in page._folder_hint.text())
        window.settings.close()


def test_sharing_at_login_is_switched_here_too(qtbot, window):
    script = ScriptedServices()
    script.machine.reason = "Login items are a Mac's."
    with bridged(window, script):
        window.settings.open()
        page = window.settings.dialog.general
        qtbot.waitUntil(lambda: page.share.toolTip() == script.machine.reason)
        assert not page.share.isEnabled()
        script.machine.reason = ""
        window.trust.sharing_wanted.emit()
        qtbot.waitUntil(page.share.isEnabled)
        page.share.click()
        qtbot.waitUntil(lambda: script.machine.on)
        window.settings.close()


def test_no_control_is_disabled_without_its_reason_and_each_has_a_name(window, dialog):
    for page in dialog.pages:
        dialog.show_page(page)
        QApplication.processEvents()
        for control in (*dialog.findChildren(QPushButton), *dialog.findChildren(QCheckBox)):
            if control.isVisible() and not control.isEnabled():
                assert control.toolTip(), control.objectName()
        controls = [one for one in interfaces(dialog) if one.state().focusable]
        assert len(controls) >= 5
        for one in controls:
            assert one.role() != QAccessible.Role.NoRole
            assert one.text(QAccessible.Text.Name) or one.text(QAccessible.Text.Value), one.object()


def test_the_api_listens_as_set(tmp_path):
    plain = api_options(Preferences(), tmp_path)
    assert (plain.host, plain.api_key, plain.or_any_port) == ("127.0.0.1", "", True)
    key = api_options(Preferences(wants_key=True), tmp_path).api_key
    assert key == own_api_key(tmp_path)
    wide = api_options(Preferences(reach="network", port=8080), tmp_path)
    assert (wide.host, wide.port, wide.api_key, wide.or_any_port) == ("0.0.0.0", 8080, key, False)
    assert renew_api_key(tmp_path) != key
    assert (tmp_path / "api-key").stat().st_mode & 0o077 == 0
