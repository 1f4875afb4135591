"""Nodes that share layers as one stage: offered by the planner, made by hand, moved as one, taken apart again."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gui import samples
from gui.formatting import GIB
from gui.store import Store


def show_like_nodes(store):
    nodes, links = samples.like_nodes()
    store.set_layout(samples.of_layers(61, int(1.1 * GIB)))
    store.set_nodes(nodes)
    store.set_links(links)


@pytest.fixture
def store(dressed):
    made = Store()
    show_like_nodes(made)
    made.choose_goal("chat")
    return made


def ranks(store):
    return [[rank.node_name for rank in stage.ranks] for stage in store.preview.shown.stages]


def test_two_that_are_alike_are_offered_together_and_taken_so(store):
    assert ranks(store) == [["MacBook Pro"], ["Studio"]]
    assert store.strip_view.offer_words.startswith("Faster with Studio + MacBook Pro as one tensor group: ")
    before = store.preview.plan.predicted.chat_tokens_per_second
    store.take_offer()
    assert ranks(store) == [["Studio", "MacBook Pro"]]
    assert store.preview.plan.predicted.chat_tokens_per_second > before
    assert store.strip_view.offer_words == ""
    first, second, third = store.editor_view.cards
    assert (first.layers, second.layers, third.layers) == ("61 layers shared", "61 layers shared", "no layers")
    assert (first.leader, second.leader) == (None, 0)
    assert "shared with Studio" in second.tooltip
    assert store.editor_view.counts == (61, 0, 0)
    store.undo()
    assert ranks(store) == [["MacBook Pro"], ["Studio"]]


@pytest.mark.parametrize("boundary", [0, 1])
def test_the_layers_of_a_group_move_as_those_of_one_node(store, boundary):
    store.take_offer()
    store.move_boundary(boundary, 58)
    assert store.split.counts == (58, 0, 3)
    assert ranks(store) == [["Studio", "MacBook Pro"], ["Mac mini"]]
    store.move_boundary(boundary, 60)
    assert store.split.counts == (60, 0, 1)
    store.balance(boundary)
    assert store.split.counts[1] == 0


def test_a_group_made_by_hand_has_the_layers_of_both_and_is_taken_apart_again(store):
    store.choose_goal("even")
    ids = store.ids
    counts = store.split.counts
    store.join_next(ids[0])
    assert store.split.counts == (counts[0] + counts[1], 0, counts[2])
    assert len(ranks(store)[0]) == 2
    store.choose_goal("even")
    assert sorted(store.split.counts) == [0, 30, 31]
    store.take_apart(ids[1])
    assert 0 not in store.split.counts
    assert max(map(len, ranks(store))) == 1


def test_a_group_ends_when_one_of_it_is_left_out_or_goes_away(store):
    store.take_offer()
    store.leave_out("macbook-pro")
    assert store.arrangement.groups == ()
    store.undo()
    store.set_nodes(tuple(node for node in store.nodes if node.resources.node_id != "macbook-pro"))
    assert all(len(names) == 1 for names in ranks(store))


def entry(window, card, text):
    return next(entry for entry in window.editor.cards[card].menu().actions() if entry.text() == text)


def test_the_window_offers_it_as_a_button_and_in_the_menu_of_a_card(window):
    show_like_nodes(window.store)
    window.store.choose_goal("chat")
    button = next(button for button in window.strip.buttons if button.objectName() == "offer_button")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert window.store.arrangement.groups == (("studio", "macbook-pro"),)
    assert window.editor.handles[0].isHidden()
    entry(window, 1, "Take the Group Apart").trigger()
    assert window.store.arrangement.groups == ()
    entry(window, 0, "Share Layers with the Next").trigger()
    assert len(window.store.arrangement.groups) == 1


def test_the_tensor_button_says_over_how_many_nodes_it_works_and_why_not_over_others(demo_window):
    tip = demo_window.header.mode.segments["tensor"].toolTip()
    assert tip.endswith("Tensor mode works over 3 nodes; not over 2: 9 attention heads, which 2 nodes cannot share.")
