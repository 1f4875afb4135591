"""Sees to a benchmark: measures the split that runs, then the other, and goes back to the first."""

from __future__ import annotations

from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from gui.bench.pane import NO_MODEL
from gui.bench.words import compared_words, round_words
from gui.session import Phase
from runtime.bench.order import RoundDone

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.bench.order import BenchOrder
    from runtime.bench.table import Measured
    from runtime.planning.values import Plan

CHANGED = "The split changed while it was measured, so nothing more was."
CANCELLED = "Cancelled; what was measured is in the table."


class Step(Enum):
    """How far a benchmark is."""

    NONE = "none"
    FIRST = "the split that runs"
    CHANGE = "on the way to the other"
    SECOND = "the other split"
    BACK = "on the way back"


class BenchKeeper(QObject):
    """At most one benchmark. What interrupts it ends it; what was measured stays in the table.

    Signals:
        measure_wanted: ``(BenchOrder, Serving, tuple[RankHeld, ...])``; rounds and rows follow, then its end.
        cancel_wanted: The measuring shall end.
        busy_changed: A benchmark began or ended.
    """

    measure_wanted = Signal(object, object, object)
    cancel_wanted = Signal()
    busy_changed = Signal()

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._pane = window.bench
        self.step = Step.NONE
        self._order: BenchOrder | None = None
        self._comparison = ""
        self._first_plan: Plan | None = None
        self._rows: dict[Step, list[Measured]] = {}
        self._rounds = 0
        self._began_seconds = 0.0
        self._end_words = ""
        """What is said in place of how it ended, since it was ended on purpose."""
        self._pane.run_wanted.connect(self.start)
        self._pane.cancel_wanted.connect(self.cancel)

    @property
    def busy(self) -> bool:
        return self.step is not Step.NONE

    @Slot(object, str)
    def start(self, order: BenchOrder, comparison: str) -> None:
        """Begin."""
        if self.busy or self._blocked() is not None:
            return
        self._order, self._comparison = order, comparison
        self._first_plan = self._window.store.session.plan
        self._rows = {Step.FIRST: [], Step.SECOND: []}
        self._measure(Step.FIRST)

    @Slot()
    def cancel(self) -> None:
        """End it; a session that went over to another split goes back."""
        if self.step in {Step.FIRST, Step.SECOND}:
            self._stop(CANCELLED)

    @Slot(object)
    def tell(self, told: RoundDone | Measured) -> None:
        """A round or a row is done."""
        if self._order is None or self.step not in self._rows:
            return
        if isinstance(told, RoundDone):
            self._rounds += 1
            self._pane.say(round_words(told, self._rounds, self._order, monotonic() - self._began_seconds))
        else:
            self._rows[self.step].append(told)
            self._pane.add_row(told)

    @Slot(str)
    def over(self, trouble: str) -> None:
        """The measuring ended: why, if it was not done."""
        words, self._end_words = self._end_words or trouble, ""
        if self.step is Step.SECOND and self._window.store.session.can_change:
            self._go_back(words or self._compared())
        elif self.step is Step.FIRST and self._comparison and not words:
            self._change()
        else:
            self._finish(words, bad=bool(trouble))

    def follow(self) -> None:
        """The session, or what is shown of it, may have changed."""
        session = self._window.store.session
        if self.step is Step.CHANGE and session.can_change:
            if session.outcome is None:
                self._finish("The other split was refused, so only this one was measured.", bad=True)
            else:
                self._measure(Step.SECOND)
        elif self.step is Step.BACK and session.can_change:
            self._finish(self._end_words)
        elif self.step in {Step.CHANGE, Step.BACK} and session.phase is not Phase.RUNNING:
            self._finish("The session ended.", bad=True)
        elif self.step in {Step.FIRST, Step.SECOND} and not self._end_words:
            if session.phase is not Phase.RUNNING:
                self._stop("The session ended, and so did the benchmark.")
            elif session.change is not None:
                self._stop(CHANGED)
        self._show()

    # Inside -------------------------------------------------------------------------------------------------------

    def _measure(self, step: Step) -> None:
        session, began = self._window.store.session, not self.busy
        self.step = step
        if began:
            self.busy_changed.emit()
        self._rounds, self._began_seconds = 0, monotonic()
        self._pane.say("The first round warms up…")
        self._show()
        self.measure_wanted.emit(self._order, session.serving, session.held)

    def _stop(self, words: str) -> None:
        self._end_words = words
        self.cancel_wanted.emit()

    def _change(self) -> None:
        store = self._window.store
        if self._comparison == "even":
            store.choose_goal("even")
        if store.pending is None:
            reason = store.preview.refusal if store.preview is not None else None
            self._finish(reason or "The other split is the one that runs, so only this one was measured.", bad=True)
            return
        self.step = Step.CHANGE
        self._pane.say("The session goes over to the other split…")
        self._window.desk.apply()

    def _go_back(self, words: str) -> None:
        store = self._window.store
        assert self._first_plan is not None  # it was measured first
        store.show_plan(self._first_plan)
        if store.pending is None:
            self._finish(words)
            return
        self.step, self._end_words = Step.BACK, words
        self._pane.say("The session goes back to the first split…")
        self._window.desk.apply()

    def _compared(self) -> str:
        pairs = zip(self._rows[Step.FIRST], self._rows[Step.SECOND], strict=False)
        return " ".join(compared_words(before, after) for before, after in list(pairs)[:1])

    def _finish(self, words: str, *, bad: bool = False) -> None:
        self.step, self._end_words = Step.NONE, ""
        self.busy_changed.emit()
        self._show()
        self._pane.say(words, bad=bad)

    def _show(self) -> None:
        session = self._window.store.session
        context = session.plan.context_tokens if session.plan is not None else 0
        self._pane.show_state(self._blocked(), context, self._unlike(), busy=self.busy)

    def _blocked(self) -> str | None:
        session = self._window.store.session
        if session.phase is not Phase.RUNNING:
            return "The model is loading" if session.phase is Phase.LOADING else NO_MODEL
        if session.serving is None:
            return "The server of this session is not there yet"
        return "The split is changing" if session.change is not None else None

    def _unlike(self) -> dict[str, str]:
        """Why which other split cannot be measured."""
        store = self._window.store
        if store.session.plan is not None and store.session.plan.mode != "pipeline":
            reason = "In tensor mode there is no other split; measure this one"
            return {"even": reason, "shown": reason}
        return (
            {}
            if store.pending is not None
            else {"shown": "Move a boundary first: the split shown is the one that runs"}
        )
