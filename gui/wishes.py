"""Joins what the parts of the window want with what fulfils it inside the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.planning.plan import Goal, Mode


def join_wishes(window: Window) -> None:
    """Connect editor, strip, header and panes with the store, the desks and the window."""
    store, editor, header, strip = window.store, window.editor, window.header, window.strip

    def choose_goal(name: str) -> None:
        store.choose_goal(cast("Goal", name))

    def set_mode(name: str) -> None:
        store.set_mode(cast("Mode", name))

    editor.drag_started.connect(store.start_drag)
    editor.boundary_wanted.connect(store.move_boundary)
    editor.drag_finished.connect(store.finish_drag)
    editor.drag_cancelled.connect(store.cancel_drag)
    editor.balance_wanted.connect(store.balance)
    editor.order_wanted.connect(store.move_node)
    editor.leave_wanted.connect(store.leave_out)
    editor.return_wanted.connect(store.put_back)
    editor.join_wanted.connect(store.join_next)
    editor.apart_wanted.connect(store.take_apart)
    editor.memory_wanted.connect(window.memory.open)
    header.start_wanted.connect(window.start_session)
    header.stop_wanted.connect(window.stop_session)
    header.goal_wanted.connect(choose_goal)
    header.mode_wanted.connect(set_mode)
    strip.context_wanted.connect(store.set_context)
    strip.change_wanted.connect(store.apply_change)
    strip.node_wanted.connect(store.put_back)
    strip.apply_wanted.connect(window.desk.apply)
    strip.compare_wanted.connect(window.comparison.open)
    strip.revert_wanted.connect(store.revert_pending)
    strip.rebalance_wanted.connect(store.rebalance)
    strip.offer_wanted.connect(store.take_offer)
    strip.server.clients_wanted.connect(window.show_clients)
    window.nearby.pair_wanted.connect(window.trust.open_pairing)
    window.live.trouble.connect(window.show_trouble)
    window.logs.trouble.connect(window.show_trouble)
    window.chat.asked.connect(window.asked)
    window.chat.cancel_wanted.connect(window.cancel_wanted)
