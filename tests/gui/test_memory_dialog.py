"""How much of a node's memory Pomona may use: the slider, by mouse and key, and what the node says back."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt

from gui import samples
from gui.nodes.memory import MemoryDialog
from gui.theme import LIGHT

GIB = 1 << 30


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
