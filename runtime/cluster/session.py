"""A session: a plan on its way to a running pipeline, the chats that it answers, and its end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from resources.heap import trim_heap
from resources.sleep import SleepWatch, slept_words
from runtime.agent.folder import open_home
from runtime.cluster import told
from runtime.cluster.health import Health, of_running
from runtime.cluster.launch import MOST_CONTEXTS, JobFacts
from runtime.cluster.messages import (
    Cancel,
    Chat,
    Ended,
    Ending,
    Failed,
    PlanRefused,
    Ready,
    Recovering,
    Resplit,
    RunMeasured,
    ServerMessage,
    Statistics,
)
from runtime.cluster.model_supply import ModelSupply
from runtime.cluster.pipeline import Pipeline
from runtime.cluster.recovery import Recoveries
from runtime.cluster.requests import Requests
from runtime.cluster.running_plan import RunningPlan
from runtime.cluster.troubles import Trouble
from runtime.engine.hop import HopError
from runtime.engine.orders import CacheLimits
from runtime.errors import NodeLost, PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.launch import SessionRequest
    from runtime.cluster.text import ModelText
    from runtime.models.layout import ModelLayout

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.1
_WATCH_SECONDS = 0.25
_SAMPLE_SECONDS = 0.25
"""What a worker has counted is known here after so long."""
_WAKING_SECONDS = 30.0
"""What breaks so soon after a sleep broke because of it."""


class Session:
    """Runs ``request`` once. ``publish`` gets every message for front ends, on the loop that runs :meth:`run`."""

    def __init__(self, request: SessionRequest, layout: ModelLayout, publish: Callable[[ServerMessage], None]) -> None:
        self._request = request
        self._layout = layout
        self._publish = publish
        home = open_home(Path(request.home))
        facts = JobFacts(
            secrets.token_hex(16),
            secrets.token_bytes(32),
            request.model_folder,
            CacheLimits(layout.context_tokens, prefix_tokens=layout.context_tokens * MOST_CONTEXTS),
            home.identity.certificate_pem,
            request.hops,
        )
        self._running = RunningPlan(layout, request.plan, request.nodes, home.folder)
        self._requests = Requests(layout.context_tokens, publish)
        self._supply = ModelSupply(home, request.model_folder, request.folder_on, publish)
        self._pipeline = Pipeline(home, facts, self._requests, self._supply, publish, self._on_trouble)
        self._ready: Ready | None = None
        self._why_building = "The model is being loaded."
        self._rebuilding: asyncio.Task[None] | None = None
        self._recoveries = Recoveries()
        self._sleep = SleepWatch()
        self._over: asyncio.Future[Failed | Ended] = asyncio.get_running_loop().create_future()

    # What front ends ask ------------------------------------------------------------------------------------------

    def snapshot(self) -> list[ServerMessage]:
        """What a front end that comes now has to know."""
        ready = [self._ready] if self._ready else []
        return [*ready, *([] if self._is_answering else map(told.progress, self._pipeline.ranks))]

    async def chat(self, chat: Chat) -> None:
        """Begin an answer, or publish why not."""
        if self._ready is None or self._over.done():
            self._requests.reject(chat, "The model is not loaded yet; wait until it is ready.")
        else:
            await self._requests.chat(chat)

    def cancel(self, cancel: Cancel) -> None:
        """End an answer; one that is over already needs nothing."""
        self._requests.cancel(cancel)

    def resplit(self, resplit: Resplit) -> None:
        """Go over to another plan, or publish why not."""
        if not self._is_answering or self._over.done():
            refusal = "The model is being loaded; change the split when it is ready."
        else:
            refusal = self._running.go_over(resplit.plan, resplit.nodes)
            self._why_building = "The split is being changed, and answers go on then."
        if refusal:
            self._publish(PlanRefused(refusal))
        else:
            self._rebuild()

    async def rebalance(self) -> None:
        """Publish what the stages took, and the split that follows."""
        if self._ready is None or self._over.done():
            self._publish(RunMeasured((), "The model is being loaded; ask again when it has answered something."))
        else:
            await asyncio.sleep(_SAMPLE_SECONDS)
            self._publish(await self._running.measured(self._pipeline.ranks))

    def stop(self) -> None:
        """End the session; :meth:`run` returns when no worker is left."""
        if not self._over.done():
            self._over.set_result(Ended())

    # What the API asks ---------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Requests:
        """Where requests go."""
        return self._requests

    @property
    def model_names(self) -> tuple[str, ...]:
        """What clients may call the model, the usual name first."""
        return tuple(dict.fromkeys(filter(None, (self._layout.name, self._supply.repository))))

    @property
    def context_tokens(self) -> int:
        """Of prompt and answer together."""
        return self._running.plan.context_tokens or self._layout.context_tokens

    def health(self) -> Health:
        """How every rank is now."""
        now, answers = time.monotonic(), self._requests.answers
        ranks = tuple(told.health(rank, now) for rank in self._pipeline.ranks)
        if self._over.done():
            return Health("ending", "The session is over.", answers.active, ranks)
        if not self._is_answering:
            return Health("loading", self._why_building, answers.active, ranks)
        return of_running(ranks, answers.active, now - answers.last_sign_seconds)

    # The life of a session ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, serve, and end; publishes ``Failed`` or ``Ended`` last."""
        async with self._pipeline:
            live = asyncio.create_task(self._live(), name="session")
            live.add_done_callback(self._note_error)
            try:
                outcome = await self._over
                live.cancel()
                reason = outcome.reason if isinstance(outcome, Failed) else "The model was stopped."
                self._requests.answers.break_off(reason)
                memory = await self._pipeline.end()
            finally:
                await _cancel(live, *([self._rebuilding] if self._rebuilding is not None else []))
                await self._requests.close()
        self._publish(Ended(memory) if isinstance(outcome, Ended) else outcome)

    @property
    def _is_answering(self) -> bool:
        """Whether requests are worked on: not while the pipeline is built, for the first time or again."""
        return self._ready is not None and self._requests.has_driver

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            text = group.create_task(asyncio.to_thread(_read_text, Path(self._request.model_folder)))
            ready = await self._build()
            self._requests.read_with(await text)
            self._begin(ready)
            await self._tell()

    async def _build(self) -> Ready:
        return await self._pipeline.build(self._running.plan, self._running.nodes)

    def _begin(self, ready: Ready) -> None:
        self._ready = ready
        self._publish(ready)
        trim_heap()  # to read a tokenizer and to plan takes a quarter of this process's memory, for a moment

    def _rebuild(self) -> None:
        """Build the pipeline of the plan as it is now, whatever is being built."""
        before = self._rebuilding
        self._pipeline.leave()

        async def rebuild() -> None:
            if before is not None:
                await _cancel(before)
            self._begin(await self._build())

        self._rebuilding = asyncio.create_task(rebuild(), name="rebuild")
        self._rebuilding.add_done_callback(self._note_error)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self._sleep.look()
            self._pipeline.look(time.monotonic())

    async def _tell(self) -> None:
        """Publish the throughput while something runs, and once after, with what the run came to.

        While nothing runs there is nothing to tell, and a model that waits should cost nothing.
        """
        answers, busy = self._requests.answers, False
        while True:
            if not busy:
                await answers.begun.wait()
            answers.begun.clear()
            await asyncio.sleep(_TICK_SECONDS)
            throughput = answers.throughput()
            was_busy = busy
            busy = throughput.active_requests > 0 or throughput.decode_tokens_per_second > 0
            if was_busy or busy:
                self._publish(throughput)
                times = tuple(map(told.times, self._pipeline.ranks))
                self._publish(Statistics(throughput.time_seconds, times))
            if was_busy and not busy and self._requests.has_driver:
                self._publish(await self._running.measured(self._pipeline.ranks))

    # The end, or how it goes on -----------------------------------------------------------------------------------

    def _on_trouble(self, trouble: Trouble) -> None:
        if not self._over.done() and not (trouble.is_mendable and self._recover(trouble)):
            self._fail(trouble.cause)

    def _recover(self, trouble: Trouble) -> bool:
        """Begin to rebuild the pipeline on what is left; False if it cannot be."""
        if self._ready is None or not self._request.keep_running or not self._recoveries.take(time.monotonic()):
            return False
        self._pipeline.lose(trouble)
        if refusal := self._running.do_without(trouble.lost_node_id):
            log.warning("cannot go on: %s", refusal)
            return False
        log.warning("going on after: %s", trouble.cause.reason)
        self._why_building = f"{trouble.cause.reason} The model is being loaded again, and answers go on then."
        self._publish(Recovering(trouble.cause.reason, trouble.cause.node_id))
        self._rebuild()
        return True

    def _fail(self, failed: Failed) -> None:
        """End the session with this cause, or with this machine's sleep, of which it is what was left to see."""
        if not self._over.done():
            if slept := self._sleep.within(_WAKING_SECONDS):
                reason = f"This machine {slept_words(slept)}, and lost its session: {failed.reason}"
                failed = msgspec.structs.replace(failed, reason=reason)
            log.error("session failed: %s", failed.reason)
            self._publish(Ending(failed.reason, failed.node_id))
            self._over.set_result(msgspec.structs.replace(failed, at=time.time()))
            self._pipeline.fail(PomonaError(failed.reason))

    def _note_error(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, PomonaError | HopError):
            log.error("the controller failed", exc_info=error)
        if isinstance(error, NodeLost):  # while the pipeline was rebuilt because of another loss
            self._on_trouble(Trouble(Failed(str(error), error.node_id), lost_node_id=error.node_id))
        else:
            self._fail(Failed(str(error) if isinstance(error, PomonaError) else f"The session broke: {error}"))


def _read_text(folder: Path) -> ModelText:
    from runtime.cluster.text import ModelText  # imports transformers: seconds, so not on the loop

    return ModelText(folder)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
