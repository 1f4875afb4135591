"""What the window knows: model, nodes, split, mode and session, and the one signal that says they changed.

It decides nothing: counts come from the person, the verdict on them from the planner, the session's state from the
controller's messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoCommand, QUndoStack

from gui.checks import Checks
from gui.preview import Preview, make_preview
from gui.session import SessionState, received, started, stopping
from gui.split.model import Split, even
from gui.split.view import EditorView, editor_view

if TYPE_CHECKING:
    from runtime.cluster.messages import ServerMessage
    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Mode, Plan


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
        self.split = Split(())
        self.mode: Mode = "pipeline"
        self.session = SessionState()
        self.preview: Preview | None = None
        self.checks = Checks()
        self.undo_stack = QUndoStack(self)
        self.undo_stack.indexChanged.connect(self._on_undo_index)
        self._seen_nodes: tuple[KnownNode, ...] = ()
        self._drag_start: Split | None = None
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

    def move_boundary(self, boundary: int, cut: int) -> None:
        """Move a boundary: as a step of the drag that goes on, else for good."""
        split = self.split.moved(boundary, cut)
        if self._drag_start is not None:
            self._show(split)
        else:
            self._push(split, "Move Boundary", merge_id=boundary)

    def start_drag(self) -> None:
        """Remember where the split was."""
        self._drag_start = self.split

    def finish_drag(self) -> None:
        """What the drag changed can be undone in one step."""
        before, self._drag_start = self._drag_start, None
        if before is not None and before != self.split:
            self._splits_of_nodes.clear()
            self.undo_stack.push(_SplitCommand(self, before, self.split, "Move Boundary"))

    def cancel_drag(self) -> None:
        """Back to where the drag began."""
        before, self._drag_start = self._drag_start, None
        if before is not None:
            self._show(before)

    def balance(self, boundary: int) -> None:
        """Share the layers of the two nodes at a boundary by their free memory."""
        budgets = [node.resources.memory_available_bytes for node in self.nodes]
        self._push(self.split.balanced(boundary, budgets), "Balance")

    def make_even(self) -> None:
        """The same number of layers for every node."""
        self._push(even(self.split.layer_count, len(self.nodes)), "Even Split")

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
    def tensor_refusal(self) -> str | None:
        """Why tensor mode is not possible with these nodes, or None."""
        if self.layout is None or not self.nodes:
            return None
        resources = [node.resources for node in self.nodes]
        return make_preview(self.layout, resources, self.split, "tensor").refusal

    @Slot()
    def _on_undo_index(self) -> None:
        """What can be undone changed, after the split did."""
        self.changed.emit()

    # Inside -------------------------------------------------------------------------------------------------------

    def _adopt_nodes(self, nodes: tuple[KnownNode, ...], *, fresh: bool = False) -> None:
        old = tuple(node.resources.node_id for node in self.nodes)
        new = tuple(node.resources.node_id for node in nodes)
        self.nodes = nodes
        if self.layout is not None and (old != new or fresh):
            self._splits_of_nodes[old] = self.split
            self.split = self._split_for(old, new, len(self.layout.layer_bytes))
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

    def _push(self, split: Split, text: str, merge_id: int = -1) -> None:
        if split != self.split and not self.session.active:
            self._splits_of_nodes.clear()  # what the person does now counts more than what was
            self.undo_stack.push(_SplitCommand(self, self.split, split, text, merge_id))

    def _show(self, split: Split) -> None:
        self.split = split
        self._refresh()

    def _refresh(self) -> None:
        if self.layout is not None:
            resources = [node.resources for node in self.nodes]
            self.preview = make_preview(self.layout, resources, self.split, self.mode)
        self.changed.emit()

    def apply_split(self, split: Split) -> None:
        """Where undo and redo come through."""
        self._show(split)


class _SplitCommand(QUndoCommand):
    """From one split to another. Key presses on one boundary in a row are undone together."""

    def __init__(self, store: Store, before: Split, after: Split, text: str, merge_id: int = -1) -> None:
        super().__init__(text)
        self._store, self._before, self._after, self._merge_id = store, before, after, merge_id

    def id(self) -> int:
        return self._merge_id

    def mergeWith(self, other: QUndoCommand) -> bool:  # noqa: N802  Qt's name
        if not isinstance(other, _SplitCommand):
            return False
        self._after = other._after  # noqa: SLF001  of the same class
        return True

    def redo(self) -> None:
        self._store.apply_split(self._after)

    def undo(self) -> None:
        self._store.apply_split(self._before)
