"""Goals, the context, and what helps: the planner's words, a click each, undone like any move."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gui import samples
from gui.store import Store


@pytest.fixture
def store(dressed):
    made = Store()
    made.set_layout(samples.SMALL_MODEL)
    made.set_nodes(samples.unequal_nodes())
    return made


def names(store):
    return [node.resources.name for node in store.nodes]


def fits(store):
    return store.preview.plan is not None


def test_the_fastest_chat_puts_the_quick_node_first_and_says_who_is_left_out(store):
    store.choose_goal("chat")
    assert names(store)[0] == "Studio"
    assert store.split.counts == (30, 0, 0)
    reasons = {node.node_name: node.reason for node in store.strip_view.unused}
    assert set(reasons) == {"MacBook Air", "MacBook Pro"}
    assert all("tok/s without it" in reason for reason in reasons.values())


def test_a_goal_can_be_undone_with_the_order_of_the_nodes(store):
    before = (names(store), store.split)
    store.choose_goal("chat")
    chosen = (names(store), store.split)
    store.undo()
    assert (names(store), store.split) == before
    store.redo()
    assert (names(store), store.split) == chosen


def test_a_node_that_was_left_out_is_put_back_in(store):
    store.choose_goal("chat")
    alone = store.preview.plan.predicted.chat_tokens_per_second
    store.put_back("macbook-air")
    counts = dict(zip(names(store), store.split.counts, strict=True))
    assert counts["MacBook Air"] > 0
    assert store.preview.plan.predicted.chat_tokens_per_second < alone
    assert [node.node_name for node in store.strip_view.unused] == ["MacBook Pro"]
    store.undo()
    assert store.split.counts == (30, 0, 0)


def test_a_boundary_that_is_moved_by_hand_is_for_no_goal(store):
    store.choose_goal("requests")
    store.move_boundary(0, 3)
    assert store.arrangement.goal is None
    assert store.strip_view.unused == ()


def test_a_longer_context_takes_memory_and_can_be_undone(store):
    used = [share.kv_bytes for share in store.preview.shares]
    store.set_context(4096)
    assert [share.kv_bytes * 2 for share in store.preview.shares] == used
    assert store.begin_session().context_tokens == 4096
    store.end_session()


def test_contexts_to_choose_from_end_with_the_models_own(store):
    assert store.strip_view.contexts == (512, 1024, 2048, 4096, 8192)
    assert store.strip_view.context_tokens == 8192


@pytest.fixture
def tight(store):
    store.set_layout(samples.LARGE_MODEL)
    store.set_nodes(samples.macs())
    return store


def test_what_the_planner_offers_makes_it_fit(tight):
    for boundary, cut in ((2, 57), (1, 51), (0, 29)):
        tight.move_boundary(boundary, cut)
    assert not fits(tight)
    (change, *_others) = tight.strip_view.changes
    assert change.kind == "boundary"
    tight.apply_change(change)
    assert fits(tight)
    tight.undo()
    assert not fits(tight)


def test_pomona_shares_the_layers_where_one_move_is_not_enough(tight):
    assert tight.split.counts == (16, 15, 15, 15)
    assert [change.kind for change in tight.strip_view.changes] == ["goal"]
    tight.apply_change(tight.strip_view.changes[0])
    assert tight.preview.plan is not None


def test_the_strip_of_the_window_offers_it_as_a_button(window):
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.macs())
    (button,) = window.strip.buttons
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert window.store.preview.plan is not None
    assert window.strip.buttons == []


def test_every_goal_has_a_button_and_a_menu_entry(window):
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    QTest.mouseClick(window.header.goals["requests"], Qt.MouseButton.LeftButton)
    assert window.store.arrangement.goal == "requests"
    window.menus.goals[0].trigger()
    assert window.store.arrangement.goal == "chat"
    assert [what for what, _ in window.strip.view.speeds] == [
        "One chat at 8k",
        "Many requests",
        "First token of 1k",
        "of 16k",
    ]


def test_a_running_session_keeps_context_and_goals(window):
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    window.start_session()
    assert not window.strip.context.isEnabled()
    assert not window.header.goals["chat"].isEnabled()
    assert window.header.goals["chat"].toolTip()
