"""What one window keeps for the next."""

import json

import pytest
from PySide6.QtCore import QCoreApplication, QEvent

from gui import samples
from gui.appearance import Choice
from gui.chat.book import ChatBook
from gui.keeper import Keeper
from gui.memory import FILE_NAME, INTERRUPTED, Kept, load
from gui.window import Window
from runtime.cluster.messages import Text
from tests.inputs import with_extremes


@pytest.fixture
def other(qtbot, appearance):
    made = Window(appearance, ask_before_close=False)
    qtbot.addWidget(made)
    return made


def test_chats_split_pane_and_appearance_come_back(demo_window, other, tmp_path):
    keeper = Keeper(demo_window, tmp_path)
    assert keeper.restore() is None
    keeper.keep_model(str(tmp_path))
    demo_window.store.move_boundary(0, 5)
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    done = demo_window.chat.ask("Name a river")
    demo_window.receive(Text(done, "The Rhine", (1,)))
    demo_window.receive(samples.finished(done))
    half = demo_window.chat.ask("And another")
    demo_window.receive(Text(half, "The El", (1,)))
    demo_window.appearance.choose(Choice.LIGHT)
    demo_window.show_pane("log")
    keeper.save()

    assert Keeper(other, tmp_path).restore() == tmp_path
    other.show_layout(samples.SMALL_MODEL)
    other.show_nodes(samples.virtual_nodes())
    assert other.editor.view.counts == (5, 15, 10)
    assert other.appearance.choice is Choice.LIGHT
    assert other.deck.current == "log"
    assert [answer.text for answer in other.chat.answers] == ["The Rhine", "The El"]
    assert other.chat.answers[1].error == INTERRUPTED
    demo_window.appearance.choose(Choice.DARK)


def test_a_split_of_other_nodes_is_not_forced_on_these(demo_window, other, tmp_path):
    keeper = Keeper(demo_window, tmp_path)
    demo_window.store.move_boundary(0, 5)
    keeper.save()
    Keeper(other, tmp_path).restore()
    other.show_layout(samples.SMALL_MODEL)
    other.show_nodes(samples.macs()[:2])
    assert other.editor.view.counts == (15, 15)


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 99}', b"[" * 100_000])
def test_a_file_that_cannot_be_read_is_set_aside(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    assert load(tmp_path) == Kept()
    assert not (tmp_path / FILE_NAME).exists()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_window_opens_whatever_values_the_file_has(demo_window, other, tmp_path):
    keeper = Keeper(demo_window, tmp_path)
    demo_window.store.move_boundary(0, 5)
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    done = demo_window.chat.ask("Name a river")
    demo_window.receive(Text(done, "The Rhine", (1,)))
    demo_window.receive(samples.finished(done))
    keeper.save()

    files = list(with_extremes(json.loads((tmp_path / FILE_NAME).read_bytes())))
    for tree in files:
        (tmp_path / FILE_NAME).write_text(json.dumps(tree))
        if load(tmp_path) == Kept():  # refused, and set aside
            continue
        restored = Keeper(other, tmp_path)
        restored.restore()
        other.show_layout(samples.SMALL_MODEL)
        other.show_nodes(samples.virtual_nodes())
        restored.deleteLater()
        QCoreApplication.sendPostedEvents(restored, QEvent.Type.DeferredDelete)
    assert len(files) > 200


def test_the_file_is_for_its_owner_alone(demo_window, tmp_path):
    Keeper(demo_window, tmp_path).save()
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0


def test_an_empty_chat_is_begun_once():
    book = ChatBook()
    book.begin()
    book.begin()
    assert len(book.conversations) == 1
