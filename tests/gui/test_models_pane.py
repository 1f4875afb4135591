"""The pane about models: what it lists and says, and every wish of a person over the real bridge."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QIcon
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from gui import model_samples, samples
from gui.models.fetches import Fetch, FetchState, NodeFetching
from gui.models.view import HAS_ALL, LOCKED, NOT_OPEN, NOT_OURS, RUNS
from gui.models.words import held_words, pipeline_words, tensor_words, where_words
from gui.session import Phase
from gui.session_scenes import macs
from runtime.agent.models.messages import ModelOrder
from runtime.cluster.catalogue import Catalogue
from tests.gui.scripted import ScriptedServices, bridged
from tests.gui.test_keyboard import interfaces

DEEPSEEK = ("mlx-community/DeepSeek-V3-4bit", model_samples.COMMIT)
QWEN = ("lmstudio-community/Qwen3-30B-A3B-Instruct-2507-MLX-4bit", model_samples.COMMIT)
SMOL = ("SmolLM2-135M-Instruct", model_samples.COMMIT)


@pytest.fixture
def pane(window):
    """Three models on four Macs."""
    macs(window)
    window.models_pane.show_catalogue(model_samples.catalogue())
    window.show_pane("models")
    return window.models_pane


def titles(pane):
    return [entry.title for entry in pane.list.entries]


def test_favourites_come_first_and_each_model_says_where_it_is(pane):
    assert [(entry.title, entry.words) for entry in pane.list.entries] == [
        ("DeepSeek-V3-4bit", "314.0 GB · 4 bits · parts on Studio Ultra and Studio Max"),
        ("Qwen3-30B-A3B-Instruct-2507-MLX-4bit", "16.0 GB · 4 bits · on Studio Ultra and MacBook Pro"),
        ("SmolLM2-135M-Instruct", "257 MB · float16 · on MacBook Pro"),
    ]


def test_without_a_choice_it_says_what_models_take_on_each_disk(pane):
    assert pane.overview.isVisible()
    words = [(name.text(), said.text()) for name, said in pane.overview.lines]
    assert words[0] == ("Studio Ultra", "180.7 GB of models · 412.0 GB free")
    assert words[3] == ("Mac mini", "No models · 148.0 GB free")


def test_a_model_says_what_it_is_what_it_can_do_and_who_has_what(pane):
    pane.list.choose(DEEPSEEK)
    view = pane.detail.view
    assert view.facts == "61 layers · 314.0 GB · 4 bits · 160k context"
    assert view.pipeline == "Any split of its layers over nodes"
    assert view.tensor == "Over 2 or 4 nodes"
    lines = [(line.name, line.words, line.keep_reason, line.delete_reason) for line in view.lines]
    assert lines == [
        ("Studio Ultra", "32 of 61 layers · 164.7 GB", None, None),
        ("Studio Max", "19 of 61 layers · 97.8 GB", None, None),
        ("MacBook Pro", "Nothing of it", None, None),
        ("Mac mini", "Nothing of it", None, None),
    ]
    assert view.split_reason == NOT_OPEN


def test_a_copy_in_another_folder_is_not_ours_to_delete(pane):
    pane.list.choose(QWEN)
    lines = {line.name: line for line in pane.detail.view.lines}
    assert lines["Studio Ultra"].keep_reason == HAS_ALL
    assert lines["MacBook Pro"].delete_reason == NOT_OURS
    row = pane.detail.rows["macbook-pro"]
    assert not row.delete.isEnabled()
    assert row.delete.toolTip() == NOT_OURS


def test_words_of_splits():
    plain = model_samples.deepseek(0)
    refused = model_samples.held(
        "x", "y", 3, 0, 3, pipeline_refusal="Its layers pass on state.", tensor_sizes=(), tensor_refusal="9 heads."
    )
    assert held_words(plain) == "No layers, only what describes it"
    assert (pipeline_words(refused), tensor_words(refused)) == ("Its layers pass on state.", "9 heads.")
    assert where_words(model_samples.catalogue().listings[0]) == "parts on Studio Ultra and Studio Max"


def test_deleting_asks_in_place(qtbot, pane):
    pane.list.choose(DEEPSEEK)
    row = pane.detail.rows["studio-max"]
    with qtbot.assertNotEmitted(pane.delete_wanted):
        row.delete.click()
        assert row.asks
        assert row.refuse.hasFocus() or not pane.window().isActiveWindow()
        row.refuse.click()
        assert not row.asks
        row.delete.click()
    with qtbot.waitSignal(pane.delete_wanted) as wanted:
        row.confirm.click()
    assert wanted.args == [ModelOrder("DeepSeek-V3-4bit", *DEEPSEEK), "studio-max"]


def test_the_filter_and_the_hub(qtbot, pane):
    QTest.keyClicks(pane.field, "qwen")
    assert titles(pane) == ["Qwen3-30B-A3B-Instruct-2507-MLX-4bit", "Return searches the hub"]
    with qtbot.waitSignal(pane.search_wanted) as wanted:
        QTest.keyClick(pane.field, Qt.Key.Key_Return)
    assert wanted.args == ["qwen"]
    pane.show_found(model_samples.found(), "")
    assert titles(pane)[1:3] == ["On the hub", "mlx-community/Qwen3-30B-A3B-4bit"]
    with qtbot.waitSignal(pane.describe_wanted) as asked:
        pane.list.choose(("mlx-community/gemma-3-27b-it-qat-4bit", ""))
    assert asked.args == ["mlx-community/gemma-3-27b-it-qat-4bit"]
    pane.show_description("mlx-community/gemma-3-27b-it-qat-4bit", None, "The hub asks for permission.")
    assert pane.detail.facts.text() == "The hub asks for permission."
    pane.show_found((), "")
    assert "none in MLX format" in titles(pane)[1]
    pane.show_found((), "The hub does not answer.")
    assert (pane.trouble.text(), pane.trouble.isVisible()) == ("The hub does not answer.", True)
    pane.field.clear()
    assert not pane.trouble.isVisible()
    assert len(titles(pane)) == 3


def test_return_in_the_list_opens(qtbot, pane, window):
    pane.list.choose(SMOL)
    with qtbot.waitSignal(window.models.model_wanted) as wanted:
        QTest.keyClick(pane.list, Qt.Key.Key_Return)
    assert wanted.args == [ModelOrder("SmolLM2-135M-Instruct", "", model_samples.COMMIT)]


def test_while_a_model_runs_its_layers_stay(pane, window):
    window.models_desk.show_opened(ModelOrder("DeepSeek-V3-4bit", *DEEPSEEK), None)
    pane.list.choose(DEEPSEEK)
    assert pane.detail.open.toolTip() == "It is the model that the window shows"
    window.start_session()
    lines = pane.detail.view.lines
    assert {line.delete_reason for line in lines if line.is_there} == {RUNS}
    assert "it runs" in pane.detail.fetch.toolTip()
    pane.list.choose(QWEN)
    assert pane.detail.open.toolTip() == LOCKED
    window.store.end_session()


def test_a_fetch_says_bytes_rate_and_time_left_and_stays_where_it_is(pane, window):
    window.models_desk.show_fetches((model_samples.fetching(),))
    pane.list.choose(DEEPSEEK)
    (box,) = pane.detail.boxes.values()
    bar = box.bars["macbook-pro"]
    assert bar.bar.accessibleDescription() == "19.0 GB of 32.0 GB · 1.1 GB/s · 12 s left"
    window.models_desk.show_fetches((model_samples.fetching(FetchState.PAUSED),))
    assert pane.detail.boxes["split"] is box
    assert box.bars["macbook-pro"] is bar
    assert box.pause.text() == "Go On"
    assert bar.bar.accessibleDescription() == "19.0 GB of 32.0 GB"
    window.models_desk.show_fetches(())
    assert not pane.detail.boxes


@pytest.mark.parametrize(
    ("node", "state", "words"),
    [
        (NodeFetching("a", "A"), FetchState.RUNNING, "Asking who has what"),
        (NodeFetching("a", "A"), FetchState.FAILED, ""),
        (NodeFetching("a", "A", "", 2**30, 2**30, 5.0, 0.0), FetchState.RUNNING, "1.0 GB of 1.0 GB"),
        (NodeFetching("a", "A", "", 0, 2**30, 0.0, None), FetchState.RUNNING, "0 MB of 1.0 GB · 0 MB/s"),
    ],
)
def test_words_of_progress(node, state, words):
    assert node.progress_words(state) == words


def test_a_fetch_knows_its_model():
    fetch = Fetch("key", ModelOrder("name", "owner/name", "abc"), "title")
    assert fetch.is_of("owner/name", "abc")
    assert not fetch.is_of("owner/name", "abd")


def test_no_button_is_disabled_without_its_reason(pane, window):
    for key in (DEEPSEEK, QWEN, SMOL):
        pane.list.choose(key)
        for button in pane.findChildren(QPushButton):
            if button.isVisible() and not button.isEnabled():
                assert button.toolTip(), button.objectName()


def test_every_control_has_a_role_and_a_name(pane, window):
    window.models_desk.show_fetches((model_samples.fetching(),))
    pane.list.choose(DEEPSEEK)
    pane.detail.rows["studio-max"].delete.click()
    QApplication.processEvents()
    named = [
        (one.role(), one.text(QAccessible.Text.Name))
        for one in interfaces(pane)
        if one.state().focusable or one.role() in {QAccessible.Role.PushButton, QAccessible.Role.ProgressBar}
    ]
    assert len(named) >= 12
    assert all(role != QAccessible.Role.NoRole and name for role, name in named), named
    star = pane.detail.star
    assert not star.icon().pixmap(18, QIcon.Mode.Normal).isNull()


def test_folder_and_file_can_be_looked_for(qtbot, pane, window):
    for button, name in ((pane.folder, "model_folder_dialog"), (pane.file, "model_file_dialog")):
        button.click()
        dialog = window.findChild(QFileDialog, name)
        with qtbot.waitSignal(window.models.model_wanted) as wanted:
            dialog.fileSelected.emit("/models/x/config.json")
        assert str(wanted.args[0]) == "/models/x/config.json"
        dialog.close()
        QApplication.processEvents()


def test_from_the_welcome_page_to_the_pane_and_an_open_model(qtbot, window):
    script = ScriptedServices(nodes=samples.macs())
    with bridged(window, script, model=None):
        qtbot.waitUntil(lambda: len(window.welcome.rows) == 3)
        assert window.welcome.rows[0].text() == "DeepSeek-V3-4bit"
        window.welcome.all.click()
        pane = window.models_pane
        qtbot.waitUntil(pane.list.isVisible)
        qtbot.waitUntil(lambda: len(pane.list.entries) == 3)
        pane.list.choose(QWEN)
        pane.detail.open.click()
        qtbot.waitUntil(lambda: window.store.layout is not None)
        assert ("folder", QWEN[0]) in script.models.wishes


def test_what_is_said_again_leaves_page_and_menu_alone(window):
    window.models.show_models(model_samples.catalogue())
    row, action = window.welcome.rows[0], window.models.menu.actions()[0]
    window.models.show_models(Catalogue(model_samples.catalogue().listings))
    assert window.welcome.rows[0] is row
    assert window.models.menu.actions()[0] is action


def test_marks_deletes_and_searches_over_the_bridge(qtbot, window):
    script = ScriptedServices(nodes=samples.macs())
    pane = window.models_pane
    with bridged(window, script):
        window.show_pane("models")
        qtbot.waitUntil(lambda: len(pane.list.entries) == 3)
        pane.list.choose(QWEN)
        pane.detail.star.click()
        qtbot.waitUntil(lambda: pane.list.entries[1].is_favourite and pane.detail.view.is_favourite)
        pane.detail.star.click()
        qtbot.waitUntil(lambda: not pane.detail.view.is_favourite)
        pane.list.choose(DEEPSEEK)
        row = pane.detail.rows["studio-max"]
        row.delete.click()
        row.confirm.click()
        qtbot.waitUntil(lambda: "Nothing of it" in pane.detail.rows["studio-max"].accessibleName())
        script.models.trouble = "Studio Ultra: it is being fetched already on this node."
        pane.detail.rows["studio-ultra"].delete.click()
        pane.detail.rows["studio-ultra"].confirm.click()
        qtbot.waitUntil(lambda: "being fetched already" in window.banner.words)
        script.models.trouble = None
        pane.field.setText("qwen")
        QTest.keyClick(pane.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: "mlx-community/Qwen3-30B-A3B-4bit" in titles(pane))
        pane.list.choose(("mlx-community/Qwen3-30B-A3B-4bit", ""))
        qtbot.waitUntil(lambda: pane.detail.view.facts.startswith("48 layers"))
        assert [row.line.words for row in pane.detail.rows.values()] == ["Nothing of it"] * 4


def test_a_full_copy_is_fetched_paused_gone_on_with_and_given_up(qtbot, window):
    script = ScriptedServices(nodes=samples.macs())
    pane, models = window.models_pane, script.models
    with bridged(window, script):
        window.show_pane("models")
        qtbot.waitUntil(lambda: len(pane.list.entries) == 3)
        pane.list.choose(QWEN)
        qtbot.waitUntil(lambda: "mac-mini" in pane.detail.rows)
        pane.detail.rows["mac-mini"].keep.click()
        qtbot.waitUntil(lambda: len(pane.detail.boxes) == 1)
        (box,) = pane.detail.boxes.values()
        qtbot.waitUntil(lambda: "mac-mini" in box.bars)
        assert pane.detail.rows["mac-mini"].keep.toolTip().startswith("It is being fetched there")
        box.pause.click()
        qtbot.waitUntil(lambda: box.pause.text() == "Go On")
        box.pause.click()
        qtbot.waitUntil(lambda: models.wishes.count(("full", QWEN[0].partition("/")[2], "Mac mini")) == 2)
        qtbot.waitUntil(lambda: box.pause.text() == "Pause")
        box.end.click()
        qtbot.waitUntil(lambda: ("forget", QWEN[0].partition("/")[2], ["Mac mini"]) in models.wishes)
        qtbot.waitUntil(lambda: not pane.detail.boxes)
        models.trouble = "The disk is full."
        pane.detail.rows["mac-mini"].keep.click()
        qtbot.waitUntil(lambda: any("disk is full" in one.accessibleName() for one in pane.detail.boxes.values()))


def test_the_split_that_is_shown_is_fetched(qtbot, window):
    script = ScriptedServices(nodes=samples.macs())
    script.models.places["studio-ultra"] = script.models.places["studio-ultra"]._replace(
        models=(model_samples.held("model", "", 30, 30, 2**30),)
    )
    pane, models = window.models_pane, script.models
    models.revision = model_samples.COMMIT
    with bridged(window, script):
        window.show_pane("models")
        qtbot.waitUntil(lambda: "model" in titles(pane))
        pane.list.choose(("model", model_samples.COMMIT))
        qtbot.waitUntil(pane.detail.fetch.isEnabled)
        counts = list(window.editor.view.counts)
        pane.detail.fetch.click()
        qtbot.waitUntil(lambda: ("plan", "model", [count for count in counts if count]) in models.wishes)
        models.done.set()
        qtbot.waitUntil(lambda: [box.end.text() for box in pane.detail.boxes.values()] == ["OK"])
        next(iter(pane.detail.boxes.values())).end.click()
        qtbot.waitUntil(lambda: not pane.detail.boxes)
        assert window.store.session.phase is Phase.IDLE
