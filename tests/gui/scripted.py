"""A session that says what a test tells it to, behind the real bridge and its real thread."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path

from discovery.local_network import Verdict
from gui import pane_samples, samples
from gui.app import connect
from gui.bridge import Bridge
from gui.services import Services
from runtime.agent.trust_messages import ShownCode
from runtime.cluster.messages import Cancel, Chat, ClientMessage, Ended, Finished, Resplit, ServerMessage, Text
from runtime.errors import PomonaError


class ScriptedSession:
    """Loads, answers every question with a few words, and ends when it is closed."""

    def __init__(self, plan, answer="The capital is **Paris**."):
        self.plan = plan
        self.answer = answer
        self.sent: list[ClientMessage] = []
        self.closed = self.left = False
        self.close_seconds = 0.0
        self._queue: asyncio.Queue[ServerMessage] = asyncio.Queue()
        ranks = len(plan.ranks)
        for message in samples.loading(plan, [("loading", 0.5)] * ranks):
            self.say(message)
        self.say(samples.ready(plan))

    def say(self, message: ServerMessage) -> None:
        self._queue.put_nowait(message)

    async def send(self, message: ClientMessage) -> None:
        self.sent.append(message)
        match message:
            case Chat():
                for word in self.answer.split(" "):
                    self.say(Text(message.request_id, word + " ", (len(word),)))
                if self.answer:
                    self.say(samples.finished(message.request_id))
                for sample in samples.throughput(1.0):
                    self.say(sample)
            case Cancel():
                self.say(Finished(message.request_id, "cancelled", 5, 3, 0.1, 20.0))
            case Resplit():
                self.plan = message.plan
                self.say(samples.ready(message.plan))
            case _:
                raise AssertionError(message)

    async def events(self) -> AsyncIterator[ServerMessage]:
        while True:
            message = await self._queue.get()
            yield message
            if isinstance(message, Ended):
                return

    async def leave(self) -> None:
        self.left = True

    async def close(self) -> None:
        self.say(Ended())
        await asyncio.sleep(self.close_seconds)
        self.closed = True


class ScriptedTrust:
    """Pairs with whoever is asked with the code 123456, and notes every wish."""

    def __init__(self):
        self.wishes: list[object] = []
        self.refuse_code: str | None = None

    async def pair(self, node, code):
        self.wishes.append(("pair", node.node_id, code))
        if code != "123456":
            raise PomonaError("The code is wrong.")

    async def remove(self, node_id):
        self.wishes.append(("remove", node_id))

    async def show_code(self):
        self.wishes.append("show")
        if self.refuse_code is not None:
            raise PomonaError(self.refuse_code)
        return ShownCode("654321", 120.0)

    async def hide_code(self):
        self.wishes.append("hide")

    async def add_address(self, place):
        self.wishes.append(("address", str(place)))


class ScriptedMachine:
    """A Mac whose permission is off, and that can be shared until ``refusal`` says why not."""

    def __init__(self):
        self.verdict = Verdict.PERMISSION_OFF
        self.on = False
        self.refusal = ""
        self.reason = ""

    def check_network(self):
        return self.verdict

    def shared_at_login(self):
        return self.on

    def why_not_shared(self):
        return self.reason

    def share_at_login(self, *, on):
        if self.refusal:
            raise PomonaError(self.refusal)
        self.on = on


class ScriptedServices:
    """Hands out scripted nodes and sessions, and remembers them."""

    def __init__(self, nodes=None, answer="The capital is **Paris**.", refuse=None, hang=False):
        self.nodes = samples.virtual_nodes() if nodes is None else nodes
        self.answer, self.refuse, self.hang = answer, refuse, hang
        self.unpaired = samples.unpaired()
        self.trust = ScriptedTrust()
        self.machine = ScriptedMachine()
        self.sessions: list[ScriptedSession] = []
        self.watcher_closed = False
        self.cancelled = False
        self.layout_error: Exception | None = None
        self.running = None
        self.links = ()
        self.attached = None  # the session that an earlier window started
        self.models = samples.model_choices()
        self.known_checks = {}
        self.known_reads = 0
        self.checked = []
        self.caps = []
        self.measured = []
        self.measure_trouble = ""
        self.measures_that_hang: tuple[int, ...] = ()
        """Counted from 1."""
        self.logs = None
        self.logs_asked = []
        self.report_trouble = ""
        self.check_result = None  # the check goes on until it is cancelled
        self.loop: asyncio.AbstractEventLoop | None = None

    def services(self) -> Services:
        return Services(
            watch=self._watch,
            trust=self._trust,
            machine=lambda _home: self.machine,
            find_session=lambda _home: self.running,
            attach=self._attach,
            start_session=self._start_session,
            read_layout=self._read_layout,
            survey=self._survey,
            find_models=lambda _home: self.models,
            demo_model=lambda: Path("demo"),
            set_memory_cap=self._set_memory_cap,
            measure=self._measure,
            job_logs=self._job_logs,
            report=self._report,
            known_checks=self._known_checks,
            check=self._check,
        )

    def on_loop(self, does, *arguments) -> None:
        """Do something in the bridge's thread."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(does, *arguments)

    def _read_layout(self, _folder):
        if self.layout_error is not None:
            raise self.layout_error
        return samples.SMALL_MODEL

    async def _measure(self, serving, ranks, _folder, order, _counters):
        self.measured.append((serving.address, tuple(rank.last_layer - rank.first_layer + 1 for rank in ranks), order))
        for told in pane_samples.bench(ranks, order):
            yield told
            if len(self.measured) in self.measures_that_hang:
                await asyncio.Event().wait()
            if self.measure_trouble:
                raise PomonaError(self.measure_trouble)

    async def _job_logs(self, _home, nodes, job):
        self.logs_asked.append((tuple(node.resources.name for node in nodes), job))
        return self.logs or ()

    async def _report(self, _home, _nodes):
        if self.report_trouble:
            raise PomonaError(self.report_trouble)
        return "the report"

    def _known_checks(self, _folder):
        self.known_reads += 1
        return self.known_checks

    async def _check(self, _folder, plan):
        self.checked.append(plan)
        if isinstance(self.check_result, PomonaError):
            raise self.check_result
        if self.check_result is None:
            await asyncio.Event().wait()
        return self.check_result

    async def _set_memory_cap(self, _home, node, cap_bytes):
        self.caps.append((node.resources.name, cap_bytes))

    def _trust(self, _home):
        return self.trust

    def _watch(self, _home, on_change, on_unpaired):
        outer = self

        class Watcher:
            async def start(self):
                outer.loop = asyncio.get_running_loop()
                on_change(outer.nodes)
                on_unpaired(outer.unpaired)

            async def close(self):
                outer.watcher_closed = True

        return Watcher()

    async def _survey(self, _home, _nodes):
        return self.links

    async def _attach(self, _home, _running):
        return self.attached

    async def _start_session(self, plan, _folder, _nodes, _home):
        if self.refuse is not None:
            raise PomonaError(self.refuse)
        if self.hang:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        session = ScriptedSession(plan, self.answer)
        self.sessions.append(session)
        return session


@contextmanager
def bridged(window, script, model=Path("model")):
    """The window with a bridge, as in the product."""
    bridge = Bridge(Path("home"), model, script.services())
    connect(window, bridge)
    bridge.start()
    try:
        yield bridge
    finally:
        bridge.shutdown()
        assert bridge.join(5)
