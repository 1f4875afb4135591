"""What a person has arranged: the split, the order, the context and what else decides a plan, with undo.

It decides nothing: counts come from the person, the verdict on them from the planner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoStack

from gui.arrangement import Arrangement
from gui.preferences import Preferences
from gui.preview import Preview, best_plan, make_preview
from gui.session import SessionState
from gui.split.model import Split
from gui.split.strip_view import GOAL_NAMES
from gui.split.view import locked_words
from gui.undo import ArrangementCommand
from runtime.cluster.links import plan_links
from runtime.planning.resplit import nodes_of_session

if TYPE_CHECKING:
    from resources.node import NodeResources
    from runtime.cluster.links import NodePair
    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Change, Goal, Mode


class Arranger(QObject):
    """The arrangement of a model over nodes, and the wishes that change it. While ``locked`` it stays as it is.

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
        self.hues: dict[str, int] = {}
        """Which hue each node has, by its id: it stays when the node moves or comes back."""
        self.links: tuple[NodePair, ...] = ()
        """What is known of the ways between nodes."""
        self.undo_stack = QUndoStack(self)
        self.undo_stack.indexChanged.connect(self._on_undo_index)
        self._seen_nodes: tuple[KnownNode, ...] = ()
        self.usual = Preferences()
        """What counts for a model that nobody has arranged."""
        self._untouched = False
        """Nobody has arranged this model yet."""
        self._drag_start: Arrangement | None = None
        self._splits_of_nodes: dict[tuple[str, ...], Split] = {}

    @property
    def split(self) -> Split:
        return self.arrangement.split

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the nodes, in model order."""
        return tuple(node.resources.node_id for node in self.nodes)

    @property
    def locked(self) -> str | None:
        """Why the split cannot be changed now, or None."""
        return locked_words(self.session)

    def move_boundary(self, boundary: int, cut: int) -> None:
        """Move a boundary: as a step of the drag that goes on, else for good."""
        moved = self.arrangement.boundary_moved(boundary, cut, self.ids)
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
            self._untouched = False
            self.undo_stack.push(ArrangementCommand(self.apply, before, self.arrangement, "Move Boundary"))

    def cancel_drag(self) -> None:
        """Back to where the drag began."""
        before, self._drag_start = self._drag_start, None
        if before is not None:
            self.apply(before)

    def balance(self, boundary: int) -> None:
        """Share the layers of the two nodes at a boundary by their free memory."""
        budgets = {node.node_id: node.memory_available_bytes for node in self._resources()}
        self._push(self.arrangement.balanced(boundary, budgets, self.ids), "Balance")

    def choose_goal(self, goal: Goal) -> None:
        """The best split for a goal, nodes in the order that it takes them."""
        if goal == "even":
            self._push(self.arrangement.evenly(self.ids), GOAL_NAMES[goal])
        else:
            self._plan_for(goal, self.arrangement, GOAL_NAMES[goal])

    def leave_out(self, node_id: str) -> None:
        """A node takes no part any more; its layers go to a neighbour."""
        self._push(self.arrangement.without(node_id, self.ids), "Leave Out")

    def put_back(self, node_id: str) -> None:
        """A node that is left out takes part all the same."""
        self._plan_for(self.arrangement.goal or "chat", self.arrangement.with_node(node_id), "Put Back In")

    def move_node(self, node_id: str, place: int) -> None:
        """Another order of the nodes."""
        self._push(self.arrangement.moved(node_id, place, self.ids), "Change Order")

    def set_context(self, context_tokens: int) -> None:
        """How long prompt and answer may be together."""
        self._push(replace(self.arrangement, context_tokens=context_tokens), "Context")

    def apply_change(self, change: Change) -> None:
        """What the planner offers to make it fit."""
        now = self.arrangement
        match change.kind:
            case "boundary":
                self._push(now.by_hand(Split(change.counts)), "Move Boundary")
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

    def _plan_for(self, goal: Goal, setting: Arrangement, text: str) -> None:
        if self.layout is None or not self.nodes or self.locked:
            return
        plan = best_plan(self.layout, self._resources(), goal, setting, plan_links(self.links))
        if plan is not None:
            self._push(replace(setting.for_goal(plan, self.ids), goal=goal), text)

    def take_offer(self) -> None:
        """Have the nodes that the planner names share the layers of stages."""
        now = self.arrangement
        if now.offer is not None:
            self._plan_for(now.goal or "chat", replace(now, groups=now.offer.groups, offer=None), "Share Layers")

    def join_next(self, node_id: str) -> None:
        """Have a node and the one after it share every layer of theirs."""
        place = self.ids.index(node_id)
        if place + 1 < len(self.ids):
            self._push(self.arrangement.together((node_id, self.ids[place + 1]), self.ids), "Share Layers")

    def take_apart(self, node_id: str) -> None:
        """Have the nodes of a group be stages of their own again."""
        self._push(self.arrangement.apart(node_id, self.ids), "Take Apart")

    def undo(self) -> None:
        """Back to the split before; a running session goes over to it when that is applied."""
        if not self.locked:
            self.undo_stack.undo()

    def redo(self) -> None:
        """Forward again."""
        if not self.locked:
            self.undo_stack.redo()

    def set_mode(self, mode: Mode) -> None:
        """Pipeline or tensor."""
        if mode != self.mode and not self.session.active:
            self.mode = mode
            self._refresh()

    def set_usual(self, usual: Preferences) -> None:
        """What counts for models that nobody has arranged is another; the one that is shown follows if it is such."""
        if usual != self.usual:
            before, self.usual = self.usual, usual
            if self._untouched and before.goal != usual.goal == "even":
                self.arrangement = self.arrangement.evenly(self.ids)
            self._arrange_as_usual()
            self._refresh()

    # Inside -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_undo_index(self) -> None:
        """What can be undone changed, after the split did."""
        self.changed.emit()

    def _resources(self) -> list[NodeResources]:
        """What the nodes have for a plan."""
        return nodes_of_session((node.resources for node in self.nodes), self.session.held_bytes)

    def _push(self, wanted: Arrangement, text: str, merge_id: int = -1) -> None:
        if wanted != self.arrangement and not self.locked:
            self._splits_of_nodes.clear()  # what the person does now counts more than what was
            self._untouched = False
            self.undo_stack.push(ArrangementCommand(self.apply, self.arrangement, wanted, text, merge_id))

    def _arrange_as_usual(self) -> None:
        """Context and goal as set for every model, of one that nobody has arranged. There is no way back from it."""
        if not self._untouched or self.layout is None or self.locked or self.session.active:
            return
        wanted = self.usual.context_tokens
        context = min(wanted, self.layout.context_tokens) if wanted is not None else None
        self.arrangement = replace(self.arrangement, context_tokens=context)
        if self.usual.goal == "even" or not self.nodes:
            return
        plan = best_plan(self.layout, self._resources(), self.usual.goal, self.arrangement, plan_links(self.links))
        if plan is not None:
            self.arrangement = replace(self.arrangement.for_goal(plan, self.ids), goal=self.usual.goal)
            self.nodes = ordered(self.nodes, self.arrangement.order)

    def _refresh(self) -> None:
        for node_id in self.ids:
            if node_id not in self.hues:
                taken = {self.hues[other] for other in self.ids if other in self.hues}
                self.hues[node_id] = next(hue for hue in range(len(taken) + 1) if hue not in taken)
        if self.layout is not None:
            self.preview = make_preview(
                self.layout, self._resources(), self.split, self.mode, self.arrangement, plan_links(self.links)
            )
        self.changed.emit()

    def apply(self, arrangement: Arrangement) -> None:
        """Where undo and redo come through."""
        self.arrangement = arrangement
        present = self._seen_nodes if set(ids_of(self._seen_nodes)) == set(self.ids) else self.nodes
        self.nodes = ordered(present, arrangement.order)
        self._refresh()

    def apply_split(self, split: Split) -> None:
        """Set a split without a way back."""
        self.apply(self.arrangement.by_hand(split))


def ordered(nodes: tuple[KnownNode, ...], order: tuple[str, ...]) -> tuple[KnownNode, ...]:
    """Those that ``order`` names first, as it says; the others as they come."""
    places = {node_id: place for place, node_id in enumerate(order)}
    return tuple(sorted(nodes, key=lambda node: places.get(node.resources.node_id, len(places))))


def ids_of(nodes: tuple[KnownNode, ...]) -> tuple[str, ...]:
    """Their ids."""
    return tuple(node.resources.node_id for node in nodes)
