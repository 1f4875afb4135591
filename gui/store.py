"""What the window knows: model, nodes, split, mode and session, and the one signal that says they changed.

It decides nothing: counts come from the person, the verdict on them from the planner, the session's state from the
controller's messages.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from gui.arrangement import KeptSplit
from gui.arranger import Arranger, ids_of, ordered
from gui.checks import Checks
from gui.preview import make_preview
from gui.session import SessionState, changing, received, started, stopping
from gui.split.kinds import Kind, layer_kinds, layers_of_kinds
from gui.split.model import Split, even
from gui.split.strip_view import Measured, StripView, strip_view
from gui.split.view import EditorView, editor_view
from runtime.cluster.messages import Finished, Ready
from runtime.planning.refusals import tensor_sizes_words
from runtime.planning.resplit import Move, move_between, same_split

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from runtime.cluster.links import NodePair
    from runtime.cluster.messages import ServerMessage
    from runtime.cluster.nodes import KnownNode
    from runtime.models.layout import ModelLayout
    from runtime.planning.values import Plan

_TELLING_TOKENS = 8
"""An answer of fewer tokens says little about speed."""


class Store(Arranger):
    """The window's state: the arrangement, and what the bridge tells of nodes, model and session."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.checks = Checks()
        self.measured: Measured | None = None
        self._kinds: tuple[Kind, ...] = ()
        self._tensor_answer: tuple[object, str | None] | None = None
        """To a question about tensor mode."""
        self.kept_splits: dict[str, KeptSplit] = {}
        """By the model's name."""

    # From the bridge ----------------------------------------------------------------------------------------------

    def set_layout(self, layout: ModelLayout) -> None:
        """The model was read."""
        self.keep_split()
        if self.layout is not None and self.layout.name != layout.name:
            self.arrangement = self.arrangement.for_another_model()
        self.layout = layout
        self._kinds = layer_kinds(layout)
        self.measured = None
        self._splits_of_nodes.clear()
        kept = self.kept_splits.get(layout.name)
        self._untouched = kept is None and not self.session.active
        if kept is not None and sum(kept.counts) == len(layout.layer_bytes) and min(kept.counts, default=0) >= 0:
            self.arrangement = replace(self.arrangement, order=kept.order, context_tokens=kept.context_tokens)
            self._splits_of_nodes[kept.order] = Split(kept.counts)
        self._adopt_nodes(self._seen_nodes, fresh=True)

    def keep_split(self) -> None:
        """Remember the split that is shown, for the next time with the same model and nodes."""
        if self.layout is not None and self.nodes and not self._untouched:
            kept = KeptSplit(self.ids, self.split.counts, self.arrangement.context_tokens)
            self.kept_splits[self.layout.name] = kept

    def set_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """The nodes, or what they have, changed. While a session runs its nodes stay in view, whoever goes."""
        self._seen_nodes = nodes
        if not self.session.active:
            self._adopt_nodes(nodes)
            return
        newest = {node.resources.node_id: node for node in nodes}
        kept = tuple(newest.pop(node.resources.node_id, node) for node in self.nodes)
        if self.session.can_change and newest and self._drag_start is None:
            self._take_in(kept, tuple(newest.values()))
        else:
            self.nodes = kept
        self._refresh()

    def set_links(self, links: tuple[NodePair, ...]) -> None:
        """What joins the nodes is known, or has changed."""
        self.links = links
        self._arrange_as_usual()
        self._refresh()

    def set_checks(self, checks: Checks) -> None:
        """A check began or ended, or earlier ones were read."""
        self.checks = checks
        self.changed.emit()

    def receive(self, message: ServerMessage) -> None:
        """The controller said something."""
        if isinstance(message, Finished):
            self._note_speed(message)
            return
        before = self.session
        self.session = received(before, message, monotonic())
        if self.session is before:
            return
        if before.active and not self.session.active:
            self._adopt_nodes(self._seen_nodes)
        elif isinstance(message, Ready):
            self._adopt_running_plan(message.plan)
        else:
            self.changed.emit()

    # From the person ----------------------------------------------------------------------------------------------

    def begin_session(self) -> Plan | None:
        """The plan to launch, now counted as loading; None when there is none or a session runs."""
        plan = self.preview.plan if self.preview else None
        if plan is None or self.session.active:
            return None
        self.session = started(plan, monotonic())
        self.changed.emit()
        return plan

    def begin_change(self) -> Plan | None:
        """The plan that the running session shall go over to, now counted as under way; None when there is none."""
        plan = self.pending
        if plan is not None:
            self.session = changing(self.session, monotonic())
            self.changed.emit()
        return plan

    def revert_pending(self) -> None:
        """Back to the split that runs."""
        if self.session.plan is not None and self.is_edited:
            self.show_plan(self.session.plan)

    def show_plan(self, plan: Plan) -> None:
        """Show the split of a plan that ran or runs; applying it is another step."""
        self._push(self.arrangement.of_plan(plan, self.ids), "Back to What Runs")

    def rebalance(self) -> None:
        """Show the split that follows from what was measured; applying it is another step."""
        run = self.session.run
        if run is not None and run.proposal is not None:
            self._push(self.arrangement.for_goal(run.proposal, self.ids), "Rebalance")

    def adopt_session(self, plan: Plan, nodes: tuple[KnownNode, ...]) -> None:
        """A session that runs already, which an earlier window started on ``nodes``."""
        self.session = started(plan, monotonic())
        self.nodes = nodes
        self.mode = plan.mode
        self._adopt_running_plan(plan)

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
    def layers_words(self) -> str:
        """How many layers of which kinds the model has."""
        return layers_of_kinds(self._kinds)

    @property
    def is_edited(self) -> bool:
        """Whether the split that is shown is another than the one that runs."""
        running, shown = self.session.plan, self.preview.shown if self.preview else None
        return self.session.can_change and running is not None and shown is not None and not same_split(running, shown)

    @property
    def pending(self) -> Plan | None:
        """The plan that can be applied to the running session."""
        return self.preview.plan if self.preview and self.is_edited else None

    @property
    def move(self) -> Move | None:
        """What applying would take."""
        if (then := self.pending) is None or self.layout is None or self.session.plan is None:
            return None
        return move_between(self.layout, self.session.plan, then, self.session.load_bytes_per_second)

    @property
    def editor_view(self) -> EditorView:
        layer_count = len(self.layout.layer_bytes) if self.layout else 0
        if self.preview is None or not self.nodes:
            return EditorView(layer_count=layer_count)
        view = editor_view(self.preview, self.session, layer_count, self.links, self.hues)
        return replace(view, kinds=self._kinds if len(set(self._kinds)) > 1 else ())

    @property
    def plan(self) -> Plan | None:
        """The plan that runs, or that Start would launch."""
        if self.session.active:
            return self.session.plan
        return self.preview.plan if self.preview else None

    @property
    def running_counts(self) -> tuple[int, ...]:
        """Layers of each stage of the session's plan."""
        plan = self.session.plan
        return tuple(stage.layer_count for stage in plan.stages) if plan is not None else ()

    @property
    def strip_view(self) -> StripView:
        return strip_view(
            self.preview,
            self.arrangement,
            self.session,
            self.layout,
            self.move,
            self.measured,
            edited=self.is_edited,
        )

    @property
    def tensor_refusal(self) -> str | None:
        """Why tensor mode is not possible with these nodes, or None. Asked again only when something of it changed."""
        if self.layout is None or not self.nodes:
            return None
        setting = replace(self.arrangement, split=Split(()), goal=None, unused=(), offer=None)
        question = (self.layout, self.nodes, setting, self.session.held)
        if self._tensor_answer is None or self._tensor_answer[0] != question:
            asked = make_preview(self.layout, self._resources(), self.split, "tensor", setting)
            self._tensor_answer = (question, asked.refusal)
        return self._tensor_answer[1]

    @property
    def tensor_words(self) -> str:
        """Over how many of these nodes tensor mode works, and why not over others."""
        if self.layout is None or len(self.nodes) < 2:
            return ""
        return tensor_sizes_words(self.layout, len(self.nodes))

    # Inside -------------------------------------------------------------------------------------------------------

    def _adopt_nodes(self, nodes: tuple[KnownNode, ...], *, fresh: bool = False) -> None:
        old = self.ids
        self.nodes = ordered(nodes, self.arrangement.order)
        new = self.ids
        if self.layout is not None and (old != new or fresh):
            self._splits_of_nodes[old] = self.split
            split = self._split_for(old, new, len(self.layout.layer_bytes))
            self.arrangement = self.arrangement.for_nodes(split, new)
            self._drag_start = None
            self.undo_stack.clear()  # what it holds speaks of other nodes
            self._arrange_as_usual()
        self._refresh()

    def _split_for(self, old: tuple[str, ...], new: tuple[str, ...], layer_count: int) -> Split:
        """A node that comes back finds its layers; an even split stays even; else everyone keeps what they have."""
        remembered = self._splits_of_nodes.get(new)
        if remembered is not None and new and remembered.layer_count == layer_count:
            return remembered
        if self.split.layer_count != layer_count or self.split == even(layer_count, len(old)):
            return even(layer_count, len(new))
        return self.split.carried(old, new)

    def _note_speed(self, finished: Finished) -> None:
        """What an answer was measured at, if it was long enough to tell."""
        plan = self.session.plan
        if plan is not None and self.session.change is None and finished.completion_tokens >= _TELLING_TOKENS:
            self.measured = Measured(plan, finished.decode_tokens_per_second)
            self.changed.emit()

    def _take_in(self, kept: tuple[KnownNode, ...], newcomers: tuple[KnownNode, ...]) -> None:
        """While a session runs, nodes that come have no layers until someone gives them some."""
        order = (*ids_of(kept), *ids_of(newcomers))
        counts = (*self.split.counts, *(0 for _ in newcomers))
        self.nodes = (*kept, *newcomers)
        self.arrangement = replace(self.arrangement, split=Split(counts), order=order)
        self.undo_stack.clear()  # what it holds speaks of other nodes

    def _adopt_running_plan(self, plan: Plan) -> None:
        """Show what runs, after it became another."""
        self._drag_start = None
        self._untouched = False
        if self.mode == "pipeline":
            wanted = self.arrangement.of_plan(plan, self.ids)
            if wanted.split != self.split or wanted.order != self.ids:
                self.undo_stack.clear()
            self.arrangement = replace(wanted, context_tokens=plan.context_tokens or wanted.context_tokens)
            self.nodes = ordered(self.nodes, wanted.order)
        self._refresh()
