"""What a person does with a session: start, stop, change, start again after a failure; and the sentence on top."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from gui.session import Phase
from runtime.check.result import sentence
from runtime.cluster.messages import Ended, Ending, Failed, PlanRefused, Ready, Recovering

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.check.result import CheckResult
    from runtime.cluster.messages import ServerMessage

RELOAD, WITHOUT = "reload", "without"
_STOPPED = "The session was stopped before the answer was complete."


class SessionDesk(QObject):
    """Turns clicks into the window's signals and keeps banner and chat in step with the session."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._store = window.store
        window.banner.action_wanted.connect(self._on_action)
        window.banner.dismissed.connect(window.store.dismiss_failure)

    def start(self) -> None:
        """Launch the plan that is shown."""
        plan = self._store.begin_session()
        if plan is not None:
            self._window.banner.say("")
            if self._store.checks.running is not None:
                self._window.check_cancel_wanted.emit()  # the session needs the memory
            self._window.session_wanted.emit(plan, self._store.nodes)

    def stop(self) -> None:
        """End the session, or give up loading."""
        if self._store.session.phase in {Phase.LOADING, Phase.RUNNING}:
            self._store.end_session()
            self._window.stop_wanted.emit()

    def apply(self) -> None:
        """Have the running session go over to the split that is shown."""
        plan = self._store.begin_change()
        if plan is not None:
            self._window.banner.say("")
            self._window.chat.pause("The split changes; the answer goes on in a moment.")
            self._window.resplit_wanted.emit(plan, self._store.nodes)

    def check_or_cancel(self) -> None:
        """Compare the split that is shown with the whole model; or end the check that runs."""
        store = self._store
        if store.checks.running is not None:
            self._window.check_cancel_wanted.emit()
        elif (plan := store.plan) is not None and not store.session.active:
            self._window.banner.say("")
            store.set_checks(replace(store.checks, running=plan))
            self._window.check_wanted.emit(plan)

    def show_check_result(self, result: CheckResult | None) -> None:
        """A check is over; without a result it was cancelled, or its trouble is told otherwise."""
        self._store.set_checks(self._store.checks.finished(result))
        if result is not None and not result.identical:
            self._window.banner.say(sentence(result))

    def receive(self, message: ServerMessage) -> None:
        """What the controller says of the session as a whole."""
        window = self._window
        match message:
            case Failed(reason, node_id):
                window.banner.say(reason, self._ways_on(node_id))
                window.chat.session_over(reason)
            case Ending(reason):
                window.banner.say(reason)
                window.chat.session_over(reason)
            case Ended(memory):
                window.chat.session_over(_STOPPED)
                window.banner.say(" ".join(str(back) for back in memory if back.memory.missing_bytes))
            case Recovering(reason):
                window.banner.say(f"{reason} The session goes on with what is left.", bad=False)
                window.chat.pause(f"{reason} The answer goes on when the rest has loaded.")
            case PlanRefused(reason):
                window.banner.say(f"The split was not changed: {reason}")
                window.chat.go_on(None)
            case Ready(warnings=warnings):
                self._on_ready()
                if warnings and self._store.session.outcome is None:
                    window.banner.say(" ".join(warnings), bad=False)
            case _:
                pass

    def _on_ready(self) -> None:
        outcome = self._store.session.outcome
        if outcome is None:
            return
        if outcome.change.is_loss:
            where = " | ".join(str(count) for count in self._store.running_counts)
            self._window.banner.say(f"{outcome.change.reason} The session goes on with {where}.", bad=False)
        self._window.chat.go_on(outcome)

    def _ways_on(self, node_id: str | None) -> dict[str, str]:
        """What can be done after a failure, as buttons."""
        ways = {RELOAD: "Reload"}
        names = {node.resources.node_id: node.resources.name for node in self._store.nodes}
        if node_id in names and len(names) > 1:
            ways[WITHOUT] = f"Start Without {names[node_id]}"
        return ways

    @Slot(str)
    def _on_action(self, name: str) -> None:
        failure = self._store.session.failure
        if name == WITHOUT and failure is not None and failure.node_id is not None:
            self._store.leave_out(failure.node_id)
        self.start()
