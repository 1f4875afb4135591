"""How much of a node's memory Pomona may use: the slider, by mouse and key, and what the node says back."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt

from gui import samples
from gui.bridge import Bridge
from gui.nodes.memory import MemoryDialog
from gui.preview import make_preview
from gui.session import SessionState
from gui.split.card_words import card_view
from gui.split.model import Split
from gui.theme import LIGHT
from resources.memory_return import MemoryReturn
from resources.node import LastSleep
from runtime.cluster.messages import Ended, Failed, MemoryBack
from tests.gui.scripted import ScriptedServices

GIB = 1 << 30
IDLE = SessionState()


@pytest.fixture
def node():
    resources = samples.macs()[2].resources  # 48 GB
    return msgspec.structs.replace(resources, memory_cap_bytes=32 * GIB)


@pytest.fixture
def dialog(window, qtbot, node):
    made = MemoryDialog(node, LIGHT, window)
    made.show()
    yield made
    made.close()


def test_it_says_what_the_node_says(dialog, node):
    assert dialog.amount.text() == "Pomona may use at most 32.0 GB of 48 GB"
    assert "36.0 of 48.0 GB free for a model" in dialog.facts.text()
    assert not dialog.usual.isEnabled()
    assert dialog.usual.toolTip() == "It is the usual amount already"


def test_a_drag_sends_once_when_it_is_let_go(dialog, node, qtbot):
    sent = []
    dialog.cap_wanted.connect(lambda node_id, cap: sent.append((node_id, cap)))
    dialog.slider.setSliderDown(True)
    for value in (150, 120, 100):
        dialog.slider.setValue(value)
    dialog.show_node(node)  # once a second, also meanwhile
    assert dialog.amount.text() == "Pomona may use at most 24.0 GB of 48 GB"
    assert sent == []
    dialog.slider.setSliderDown(False)
    assert sent == [(node.node_id, 24 * GIB)]


def test_keys_move_it_and_it_stays_until_the_node_has_answered(dialog, node, qtbot):
    with qtbot.waitSignal(dialog.cap_wanted) as wanted:
        qtbot.keyClick(dialog.slider, Qt.Key.Key_Home)
    assert wanted.args == [node.node_id, 0]
    dialog.show_node(node)  # asked before it knew
    assert dialog.cap_bytes == 0
    dialog.show_node(msgspec.structs.replace(node, memory_cap_bytes=0, memory_cap_is_chosen=True))
    assert dialog.amount.text() == "Pomona may use at most 0 MB of 48 GB"
    with qtbot.waitSignal(dialog.cap_wanted) as wanted:
        qtbot.mouseClick(dialog.usual, Qt.MouseButton.LeftButton)
    assert wanted.args == [node.node_id, None]
    dialog.show_node(node)
    assert dialog.amount.text() == "Pomona may use at most 32.0 GB of 48 GB"


def test_the_card_s_menu_opens_it_and_what_is_chosen_goes_out_with_the_node(window, qtbot):
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.capped_macs())
    menu = window.editor.cards[2].menu()
    next(action for action in menu.actions() if action.text() == "Memory for Pomona…").trigger()
    opened = window.memory.dialog
    assert opened is not None
    assert opened.node.name == "MacBook Pro"
    with qtbot.waitSignal(window.memory.cap_wanted) as wanted:
        qtbot.keyClick(opened.slider, Qt.Key.Key_End)
    known, cap = wanted.args
    assert (known.resources.name, cap) == ("MacBook Pro", 48 * GIB)
    window.show_nodes(samples.capped_macs()[:2])  # it is gone
    assert window.memory.dialog is None


def test_the_bridge_passes_a_cap_on(window, qtbot, tmp_path):
    scripted = ScriptedServices()
    bridge = Bridge(tmp_path, tmp_path, scripted.services())
    bridge.start()
    bridge.set_memory_cap(scripted.nodes[0], GIB)
    bridge.set_memory_cap(scripted.nodes[1], None)
    qtbot.waitUntil(lambda: len(scripted.caps) == 2)
    assert scripted.caps == [(scripted.nodes[0].resources.name, GIB), (scripted.nodes[1].resources.name, None)]
    with qtbot.waitSignal(bridge.stopped):
        bridge.shutdown()
    assert bridge.join()


def card_of(name, session=IDLE):
    resources = [known.resources for known in samples.capped_macs()]
    preview = make_preview(samples.LARGE_MODEL, resources, Split((31, 20, 5, 5)), "pipeline")
    share = next(share for share in preview.shares if share.node.name == name)
    return card_view(share, session), share.node


def test_a_card_marks_where_models_must_end_and_tells_all_that_is_known():
    card, _ = card_of("MacBook Pro")
    assert card.used == pytest.approx(12 / 48)
    assert card.bound == pytest.approx((12 + 24) / 48)
    assert "Pomona 24.0 at most" in card.tooltip
    assert "GPU 3% busy" in card.tooltip
    assert "disk 412 GB free" in card.tooltip
    card, _ = card_of("Studio Max")
    assert card.bound is not None  # the limit of its GPU


@pytest.mark.parametrize(("after_seconds", "words"), [(6, "Slept at "), (4000, "The last run failed here")])
def test_a_node_that_slept_when_the_session_broke_says_so(after_seconds, words):
    _, has = card_of("MacBook Pro")
    slept = msgspec.structs.replace(has, last_sleep=LastSleep(1_800_000_000.0, 540.0))
    preview = make_preview(samples.LARGE_MODEL, [slept], Split((61,)), "pipeline")
    failure = Failed("MacBook Pro is gone.", has.node_id, at=1_800_000_000.0 + after_seconds)
    assert card_view(preview.shares[0], SessionState(failure=failure)).words.startswith(words)


def test_what_came_back_is_told_after_the_end_and_what_did_not_as_trouble(window):
    def ended(returned):
        back = MemoryBack("studio-ultra", "Studio Ultra", MemoryReturn(100 * GIB, returned))
        window.show_layout(samples.LARGE_MODEL)
        window.show_nodes(samples.macs())
        window.store.move_boundary(2, 57)
        window.store.move_boundary(1, 51)
        window.store.move_boundary(0, 32)
        assert window.store.begin_session() is not None
        window.receive(Ended((back,)))
        return window.store.session

    assert ended(100 * GIB).returned_bytes == 100 * GIB
    assert "Stopped: 100.0 GB of memory came back." in window.header.status.text()
    assert ended(20 * GIB).returned_bytes is None
    assert "80.0 of 100.0 GB did not come back on Studio Ultra" in window.banner.words
