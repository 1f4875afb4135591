"""What the window knows: model, nodes, split, mode and session, and the one signal that says they changed.

It decides nothing: counts come from the person, the verdict on them from the planner, the session's state from the
controller's messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoCommand, QUndoStack

from gui.arrangement import Arrangement
from gui.checks import Checks
from gui.preview import Preview, best_plan, make_preview
from gui.session import SessionState, received, started, stopping
from gui.split.model import Split, even
from gui.split.strip_view import GOAL_NAMES, StripView, strip_view
from gui.split.view import EditorView, editor_view

if TYPE_CHECKING:
    from runtime.cluster.messages import ServerMessage
    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Change, Goal, Mode, Plan


class Store(QObject):
    """The window's state.

    Signals:
        changed: Something that is shown changed; views read what they need.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.layout: ModelLayout | None = None
        self.nodes: tuple[KnownNode, ...] = ()
        self.arrangement = Arrangement()
        self.mode: Mode = "pipeline"
        self.session = SessionState()
        self.preview: Preview | None = None
        self.checks = Checks()
        self.undo_stack = QUndoStack(self)
        self.undo_stack.indexChanged.connect(self._on_undo_index)
        self._seen_nodes: tuple[KnownNode, ...] = ()
        self._drag_start: Arrangement | None = None
        self._splits_of_nodes: dict[tuple[str, ...], Split] = {}

    # From the bridge ----------------------------------------------------------------------------------------------

    def set_layout(self, layout: ModelLayout) -> None:
        """The model was read."""
        self.layout = layout
        self._adopt_nodes(self._seen_nodes, fresh=True)

    def set_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """The nodes, or what they have, changed. While a session runs its nodes stay in view, whoever comes or goes."""
        self._seen_nodes = nodes
        if self.session.active:
            newest = {node.resources.node_id: node for node in nodes}
            self.nodes = tuple(newest.get(node.resources.node_id, node) for node in self.nodes)
            self._refresh()
        else:
            self._adopt_nodes(nodes)

    def set_checks(self, checks: Checks) -> None:
        """A check began or ended, or earlier ones were read."""
        self.checks = checks
        self.changed.emit()

    def receive(self, message: ServerMessage) -> None:
        """The controller said something."""
        before = self.session
        self.session = received(before, message)
        if self.session is before:
            return
        if before.active and not self.session.active:
            self._adopt_nodes(self._seen_nodes)
        else:
            self.changed.emit()

    # From the person ----------------------------------------------------------------------------------------------

    @property
    def split(self) -> Split:
        return self.arrangement.split

    def move_boundary(self, boundary: int, cut: int) -> None:
        """Move a boundary: as a step of the drag that goes on, else for good."""
        moved = self._by_hand(self.split.moved(boundary, cut))
        if self._drag_start is not None:
            self.apply(moved)
        else:
            self._push(moved, "Move Boundary", merge_id=boundary)

    def start_drag(self) -> None:
        """Remember where the split was."""
        self._drag_start = self.arrangement

    def finish_drag(self) -> None:
        """What the drag changed can be undone in one step."""
        before, self._drag_start = self._drag_start, None
        if before is not None and before.split != self.split:
            self._splits_of_nodes.clear()
            self.undo_stack.push(_Command(self, before, self.arrangement, "Move Boundary"))

    def cancel_drag(self) -> None:
        """Back to where the drag began."""
        before, self._drag_start = self._drag_start, None
        if before is not None:
            self.apply(before)

    def balance(self, boundary: int) -> None:
        """Share the layers of the two nodes at a boundary by their free memory."""
        budgets = [node.resources.memory_available_bytes for node in self.nodes]
        self._push(self._by_hand(self.split.balanced(boundary, budgets)), "Balance")

    def make_even(self) -> None:
        """The same number of layers for every node."""
        shared = replace(self._by_hand(even(self.split.layer_count, len(self.nodes))), goal="even")
        self._push(shared, "Even Split")

    def choose_goal(self, goal: Goal) -> None:
        """The best split for a goal, nodes in the order that it takes them."""
        if goal == "even":
            self.make_even()
        else:
            self._plan_for(goal, self.arrangement, GOAL_NAMES[goal])

    def put_back(self, node_id: str) -> None:
        """A node that the best split leaves out takes part all the same."""
        needed = self.arrangement.needed | {node_id}
        goal = self.arrangement.goal or "chat"
        self._plan_for(goal, replace(self.arrangement, needed=needed), "Put Back In")

    def set_context(self, context_tokens: int) -> None:
        """How long prompt and answer may be together."""
        self._push(replace(self.arrangement, context_tokens=context_tokens), "Context")

    def apply_change(self, change: Change) -> None:
        """What the planner offers to make it fit."""
        now = self.arrangement
        match change.kind:
            case "boundary":
                self._push(self._by_hand(Split(change.counts)), "Move Boundary")
            case "context":
                self._push(replace(now, context_tokens=change.amount), "Shorter Context")
            case "reserve":
                self._push(replace(now, reserve_cut_bytes=now.reserve_cut_bytes + change.amount), "Smaller Reserve")
            case "goal":
                self._plan_for("room", now, GOAL_NAMES["room"])
            case "pins":
                self._plan_for(now.goal or "chat", replace(now, needed=frozenset()), "Fewer Nodes")
            case "mode":
                self.set_mode("pipeline")
            case "node":
                pass  # the person has to start Pomona on one more Mac

    def _by_hand(self, split: Split) -> Arrangement:
        return replace(self.arrangement, split=split, goal=None, unused=())

    def _plan_for(self, goal: Goal, setting: Arrangement, text: str) -> None:
        if self.layout is None or not self.nodes or self.session.active:
            return
        plan = best_plan(self.layout, [node.resources for node in self.nodes], goal, setting)
        if plan is None:
            return
        counts = {stage.ranks[0].node_id: stage.layer_count for stage in plan.stages}
        order = (*counts, *(node.resources.node_id for node in self.nodes if node.resources.node_id not in counts))
        split = Split(tuple(counts.get(node_id, 0) for node_id in order))
        self._push(replace(setting, split=split, order=order, goal=goal, unused=plan.unused), text)

    def undo(self) -> None:
        """Back to the split before; a running session keeps its split."""
        if not self.session.active:
            self.undo_stack.undo()

    def redo(self) -> None:
        """Forward again."""
        if not self.session.active:
            self.undo_stack.redo()

    def set_mode(self, mode: Mode) -> None:
        """Pipeline or tensor."""
        if mode != self.mode and not self.session.active:
            self.mode = mode
            self._refresh()

    def begin_session(self) -> Plan | None:
        """The plan to launch, now counted as loading; None when there is none or a session runs."""
        plan = self.preview.plan if self.preview else None
        if plan is None or self.session.active:
            return None
        self.session = started(plan)
        self.changed.emit()
        return plan

    def end_session(self) -> None:
        """Someone stops the session."""
        self.session = stopping(self.session)
        self.changed.emit()

    def dismiss_failure(self) -> None:
        """The person has read why the last session failed."""
        if self.session.failure is not None:
            self.session = SessionState()
            self.changed.emit()

    # For the views ------------------------------------------------------------------------------------------------

    @property
    def editor_view(self) -> EditorView:
        layer_count = len(self.layout.layer_bytes) if self.layout else 0
        if self.preview is None or not self.nodes:
            return EditorView(layer_count=layer_count)
        return editor_view(self.preview, self.session, layer_count)

    @property
    def plan(self) -> Plan | None:
        """The plan that runs, or that Start would launch."""
        if self.session.active:
            return self.session.plan
        return self.preview.plan if self.preview else None

    @property
    def strip_view(self) -> StripView:
        return strip_view(self.preview, self.arrangement, self.session, self.layout)

    @property
    def tensor_refusal(self) -> str | None:
        """Why tensor mode is not possible with these nodes, or None."""
        if self.layout is None or not self.nodes:
            return None
        resources = [node.resources for node in self.nodes]
        return make_preview(self.layout, resources, self.split, "tensor", self.arrangement).refusal

    @Slot()
    def _on_undo_index(self) -> None:
        """What can be undone changed, after the split did."""
        self.changed.emit()

    # Inside -------------------------------------------------------------------------------------------------------

    def _adopt_nodes(self, nodes: tuple[KnownNode, ...], *, fresh: bool = False) -> None:
        old = tuple(node.resources.node_id for node in self.nodes)
        self.nodes = _ordered(nodes, self.arrangement.order)
        new = tuple(node.resources.node_id for node in self.nodes)
        if self.layout is not None and (old != new or fresh):
            self._splits_of_nodes[old] = self.split
            split = self._split_for(old, new, len(self.layout.layer_bytes))
            self.arrangement = replace(self.arrangement, split=split, goal=None, unused=())
            self._drag_start = None
            self.undo_stack.clear()  # what it holds speaks of other nodes
        self._refresh()

    def _split_for(self, old: tuple[str, ...], new: tuple[str, ...], layer_count: int) -> Split:
        """A node that comes back finds its layers; an even split stays even; else everyone keeps what they have."""
        remembered = self._splits_of_nodes.get(new)
        if remembered is not None and new and remembered.layer_count == layer_count:
            return remembered
        if self.split.layer_count != layer_count or self.split == even(layer_count, len(old)):
            return even(layer_count, len(new))
        return self.split.carried(old, new)

    def _push(self, wanted: Arrangement, text: str, merge_id: int = -1) -> None:
        if wanted != self.arrangement and not self.session.active:
            self._splits_of_nodes.clear()  # what the person does now counts more than what was
            self.undo_stack.push(_Command(self, self.arrangement, wanted, text, merge_id))

    def _refresh(self) -> None:
        if self.layout is not None:
            resources = [node.resources for node in self.nodes]
            self.preview = make_preview(self.layout, resources, self.split, self.mode, self.arrangement)
        self.changed.emit()

    def apply(self, arrangement: Arrangement) -> None:
        """Where undo and redo come through."""
        self.arrangement = arrangement
        present = self._seen_nodes if _ids(self._seen_nodes) == _ids(self.nodes) else self.nodes
        self.nodes = _ordered(present, arrangement.order)
        self._refresh()

    def apply_split(self, split: Split) -> None:
        """Set a split without a way back."""
        self.apply(self._by_hand(split))


def _ordered(nodes: tuple[KnownNode, ...], order: tuple[str, ...]) -> tuple[KnownNode, ...]:
    """Those that ``order`` names first, as it says; the others as they come."""
    places = {node_id: place for place, node_id in enumerate(order)}
    return tuple(sorted(nodes, key=lambda node: places.get(node.resources.node_id, len(places))))


def _ids(nodes: tuple[KnownNode, ...]) -> set[str]:
    return {node.resources.node_id for node in nodes}


class _Command(QUndoCommand):
    """From one arrangement to another. Key presses on one boundary in a row are undone together."""

    def __init__(self, store: Store, before: Arrangement, after: Arrangement, text: str, merge_id: int = -1) -> None:
        super().__init__(text)
        self._store, self._before, self._after, self._merge_id = store, before, after, merge_id

    def id(self) -> int:
        return self._merge_id

    def mergeWith(self, other: QUndoCommand) -> bool:  # noqa: N802  Qt's name
        if not isinstance(other, _Command):
            return False
        self._after = other._after  # noqa: SLF001  of the same class
        return True

    def redo(self) -> None:
        self._store.apply(self._after)

    def undo(self) -> None:
        self._store.apply(self._before)
