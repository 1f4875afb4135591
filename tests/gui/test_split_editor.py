"""The split editor as a person uses it: mouse, keys, and assistive technology."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui import samples

LEFT = Qt.MouseButton.LeftButton


def counts(window):
    return window.editor.view.counts


def grip(handle):
    """The middle of a handle's grip, in its own coordinates."""
    return QPoint(round(handle.grip_x - handle.x()), handle.height() // 2)


def drag(window, index, layers, *, release=True):
    """Press on a boundary and move the mouse by a number of layers."""
    handle = window.editor.handles[index]
    start = grip(handle)
    QTest.mousePress(handle, LEFT, pos=start)
    there = handle.mapTo(window.editor, start) + QPoint(round(layers * window.editor.geometry_now.cell_width), 0)
    QTest.mouseMove(handle, handle.mapFrom(window.editor, there))
    if release:
        QTest.mouseRelease(handle, LEFT, pos=handle.mapFrom(window.editor, there))
    return handle


def test_dragging_a_boundary_moves_layers_between_its_two_nodes(demo_window):
    drag(demo_window, 0, -5)
    assert counts(demo_window) == (5, 15, 10)
    drag(demo_window, 1, 3)
    assert counts(demo_window) == (5, 18, 7)


def test_a_drag_past_the_next_boundary_stops_there(demo_window):
    drag(demo_window, 0, 25)
    assert counts(demo_window) == (20, 0, 10)


def test_a_bubble_shows_both_counts_while_dragging(demo_window):
    handle = drag(demo_window, 0, 2, release=False)
    assert handle.wants_bubble
    assert counts(demo_window) == (12, 8, 10)
    QTest.mouseRelease(handle, LEFT)


def test_escape_in_a_drag_puts_the_boundary_back_and_the_mouse_lets_go(demo_window):
    handle = drag(demo_window, 0, -5, release=False)
    QTest.keyClick(handle, Qt.Key.Key_Escape)
    assert counts(demo_window) == (10, 10, 10)
    QTest.mouseMove(handle, grip(handle) + QPoint(90, 0))
    QTest.mouseRelease(handle, LEFT)
    assert counts(demo_window) == (10, 10, 10)
    assert not demo_window.store.undo_stack.canUndo()


def test_one_drag_is_one_step_back(demo_window):
    drag(demo_window, 0, -5)
    demo_window.menus.undo.trigger()
    assert counts(demo_window) == (10, 10, 10)
    demo_window.menus.redo.trigger()
    assert counts(demo_window) == (5, 15, 10)


@pytest.mark.parametrize(
    ("key", "modifier", "left"),
    [
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 9),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 11),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, 5),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, 15),
        (Qt.Key.Key_PageDown, Qt.KeyboardModifier.NoModifier, 5),
        (Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier, 15),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, 0),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 20),
    ],
)
def test_keys_move_a_boundary(demo_window, key, modifier, left):
    QTest.keyClick(demo_window.editor.handles[0], key, modifier)
    assert counts(demo_window) == (left, 20 - left, 10)


def test_a_number_that_is_typed_is_what_the_left_node_gets(demo_window):
    QTest.keyClicks(demo_window.editor.handles[1], "15")
    assert counts(demo_window) == (10, 15, 5)
    demo_window.editor.handles[1]._typed_seconds = 0.0
    QTest.keyClicks(demo_window.editor.handles[1], "3")
    assert counts(demo_window) == (10, 3, 17)
    demo_window.editor.handles[1]._typed_seconds = 0.0
    QTest.keyClicks(demo_window.editor.handles[1], "999")
    assert counts(demo_window) == (10, 20, 0)


def test_kinds_of_layers_are_told_apart_in_the_bar_and_in_words(window):
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.macs())
    assert window.header.subtitle.text().startswith("61 layers, 3 dense and 58 with experts · ")
    with_marks = window.editor.grab().toImage()
    window.editor.set_view(replace(window.editor.view, kinds=()))
    assert window.editor.grab().toImage() != with_marks


def test_handles_that_meet_can_both_be_grabbed(demo_window):
    drag(demo_window, 0, 10)
    assert counts(demo_window) == (20, 0, 10)
    left, right = demo_window.editor.handles
    assert not left.geometry().intersects(right.geometry())
    for handle in (left, right):
        assert demo_window.editor.childAt(handle.geometry().center()) is handle
    drag(demo_window, 1, 4)
    assert counts(demo_window) == (20, 4, 6)
    drag(demo_window, 1, -4)
    drag(demo_window, 0, -4)
    assert counts(demo_window) == (16, 4, 10)


def test_a_node_at_the_end_can_be_left_out_and_taken_back(demo_window):
    drag(demo_window, 1, 10)
    assert counts(demo_window) == (10, 20, 0)
    assert demo_window.editor.cards[2].view.words == "Left out"
    drag(demo_window, 1, -10)
    assert counts(demo_window) == (10, 10, 10)


def test_a_double_click_shares_two_nodes_layers_by_their_memory(demo_window):
    handle = demo_window.editor.handles[0]
    QTest.mouseDClick(handle, LEFT, pos=grip(handle))
    assert counts(demo_window) == (7, 13, 10)


def test_the_wheel_does_not_move_layers(demo_window):
    handle = demo_window.editor.handles[0]
    wheel = QWheelEvent(
        grip(handle).toPointF(),
        handle.mapToGlobal(grip(handle)).toPointF(),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(handle, wheel)
    assert counts(demo_window) == (10, 10, 10)


def test_the_other_mouse_buttons_do_not_drag(demo_window):
    handle = demo_window.editor.handles[0]
    QTest.mousePress(handle, Qt.MouseButton.RightButton, pos=grip(handle))
    QTest.mouseMove(handle, grip(handle) + QPoint(100, 0))
    QTest.mouseRelease(handle, Qt.MouseButton.RightButton)
    assert counts(demo_window) == (10, 10, 10)


def test_a_boundary_tells_assistive_technology_what_it_is(demo_window):
    drag(demo_window, 0, -5)
    interface = QAccessible.queryAccessibleInterface(demo_window.editor.handles[0])
    assert interface.role() == QAccessible.Role.Slider
    assert interface.text(QAccessible.Text.Name) == "Boundary between Virtual A and Virtual B"
    description = "Virtual A holds 5 layers, Virtual B holds 15 layers"
    assert interface.text(QAccessible.Text.Description) == description
    value = interface.valueInterface()
    assert (value.currentValue(), value.minimumValue(), value.maximumValue()) == (5, 0, 20)


def test_assistive_technology_can_move_a_boundary(demo_window):
    interface = QAccessible.queryAccessibleInterface(demo_window.editor.handles[0])
    interface.valueInterface().setCurrentValue(7)
    assert counts(demo_window) == (7, 13, 10)


def test_a_card_tells_assistive_technology_what_it_shows(demo_window):
    interface = QAccessible.queryAccessibleInterface(demo_window.editor.cards[1])
    assert interface.text(QAccessible.Text.Name) == "Virtual B"
    assert "10 layers" in interface.text(QAccessible.Text.Description)
    assert "Fits" in interface.text(QAccessible.Text.Description)


def test_while_a_model_loads_boundaries_are_locked_and_say_why(demo_window):
    demo_window.start_session()
    for handle in demo_window.editor.handles:
        assert not handle.isEnabled()
        assert "Cancel to move boundaries" in handle.toolTip()
        assert "Cancel to move boundaries" in handle.accessibleDescription()
    drag(demo_window, 0, -5)
    QTest.keyClick(demo_window.editor.handles[0], Qt.Key.Key_Left)
    assert counts(demo_window) == (10, 10, 10)


def names(window):
    return [card.view.name[-1] for card in window.editor.cards]


def drag_card(window, index, way, *, release=True):
    card = window.editor.cards[index]
    QTest.mousePress(card, LEFT, pos=QPoint(60, 60))
    QTest.mouseMove(card, QPoint(60, 60) + way)
    if release:
        QTest.mouseRelease(card, LEFT, pos=QPoint(60, 60))
    return card


def test_a_card_that_is_dragged_takes_its_layers_along(demo_window):
    drag(demo_window, 0, -5)
    drag_card(demo_window, 0, QPoint(700, 0))
    assert names(demo_window) == ["B", "C", "A"]
    assert counts(demo_window) == (15, 10, 5)
    demo_window.menus.undo.trigger()
    assert names(demo_window) == ["A", "B", "C"]
    assert counts(demo_window) == (5, 15, 10)


def test_escape_puts_a_dragged_card_back(demo_window):
    place = demo_window.editor.cards[0].geometry()
    card = drag_card(demo_window, 0, QPoint(400, 0), release=False)
    assert card.geometry() != place
    QTest.keyClick(card, Qt.Key.Key_Escape)
    assert card.geometry() == place
    assert names(demo_window) == ["A", "B", "C"]


def test_keys_move_a_node_leave_it_out_and_its_menu_puts_it_back(demo_window):
    card = demo_window.editor.cards[0]
    QTest.keyClick(card, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert names(demo_window) == ["B", "A", "C"]
    QTest.keyClick(demo_window.editor.cards[1], Qt.Key.Key_Delete)
    assert counts(demo_window) == (20, 0, 10)
    demo_window.store.choose_goal("even")
    assert counts(demo_window) == (15, 0, 15)
    menu = demo_window.editor.cards[1].menu()
    back = next(action for action in menu.actions() if action.text() == "Put Back In")
    back.trigger()
    menu.deleteLater()
    held = dict(zip(names(demo_window), counts(demo_window), strict=True))
    assert held["A"] > 0


def test_a_node_keeps_its_hue_wherever_it_stands(demo_window):
    before = {card.view.node_id: card.view.hue for card in demo_window.editor.cards}
    drag_card(demo_window, 0, QPoint(700, 0))
    assert {card.view.node_id: card.view.hue for card in demo_window.editor.cards} == before


def test_a_session_that_starts_under_a_drag_ends_it(demo_window):
    handle = drag(demo_window, 0, -5, release=False)
    demo_window.start_session()
    assert not handle.dragging
    assert counts(demo_window) == (5, 15, 10)
    assert [stage.layer_count for stage in demo_window.store.session.plan.stages] == [5, 15, 10]


def test_nodes_that_come_during_a_drag_end_it_without_harm(demo_window):
    drag(demo_window, 0, -5, release=False)
    demo_window.show_nodes(samples.virtual_nodes()[:2])
    assert sum(counts(demo_window)) == 30
    QApplication.processEvents()
    drag(demo_window, 0, 2)
    assert sum(counts(demo_window)) == 30


@pytest.mark.parametrize("nodes", [1, 2, 5, 8, 16])
@pytest.mark.parametrize("layers", [1, 30, 200])
def test_any_number_of_nodes_and_layers_can_be_shown_and_painted(window, nodes, layers):

    window.resize(1024, 700)
    window.show_layout(samples.of_layers(layers, 2**20))
    window.show_nodes(samples.many_nodes(nodes))
    QApplication.processEvents()
    assert window.editor.height() == window.editor.heightForWidth(window.editor.width())
    assert not window.editor.grab().isNull()
    for card in window.editor.cards:
        assert window.editor.rect().contains(card.geometry())
    for handle in window.editor.handles:
        middle = QPoint(round(handle.grip_x), handle.geometry().center().y())
        assert window.editor.childAt(middle) is handle


def test_long_names_are_whole_in_the_tooltip(window):
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.many_nodes(8))
    assert "MacBook Pro of somebody with a very long name" in window.editor.cards[0].toolTip()


def test_the_same_state_is_painted_the_same(demo_window):
    assert demo_window.editor.grab().toImage() == demo_window.editor.grab().toImage()


def test_in_tensor_mode_there_is_no_boundary(demo_window):
    demo_window.store.set_mode("tensor")
    assert not any(handle.isVisible() for handle in demo_window.editor.handles)
    demo_window.store.set_mode("pipeline")
    assert all(handle.isVisible() for handle in demo_window.editor.handles)
