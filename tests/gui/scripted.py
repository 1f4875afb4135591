"""A session that says what a test tells it to, behind the real bridge and its real thread."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path

from discovery.local_network import Verdict
from gui import model_samples, pane_samples, samples
from gui.bridge import Bridge
from gui.services import Services
from gui.wiring import connect
from runtime.agent.models.messages import FetchProgress, ModelOrder
from runtime.agent.trust_messages import ShownCode
from runtime.cluster.catalogue import ModelPlace
from runtime.cluster.messages import (
    Cancel,
    Chat,
    ClientMessage,
    Ended,
    Finished,
    Resplit,
    Serve,
    ServerMessage,
    Serving,
    Text,
)
from runtime.cluster.model_desk import Keeping
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
            case Serve():
                self.say(Serving("http://192.0.2.1:8080/v1", "a-model", message.options.api_key))
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


class ScriptedModels:
    """Three models on four Macs, and a hub; fetches go on until they are let go, or fail."""

    node_id = "studio-ultra"

    def __init__(self):
        self.places = {place.node_id: place for place in model_samples.places()}
        self.marked = ["mlx-community/DeepSeek-V3-4bit"]
        self.wishes: list[object] = []
        self.found = model_samples.found()
        self.trouble: str | None = None
        self.done = threading.Event()
        self.kept_in: Path | None = None
        self.token = ""
        self.revision = ""

    async def here(self, name):
        return self.places[self.node_id]

    async def on_node(self, node):
        return self.places.get(
            node.resources.node_id, ModelPlace(node.resources.name, node.resources.node_id, (), None)
        )

    def favourites(self):
        return tuple(self.marked)

    def mark(self, name, *, on):
        self.marked = [*self.marked, name] if on else [one for one in self.marked if one != name]

    async def search(self, words):
        self.wishes.append(("search", words))
        if self.trouble is not None:
            raise PomonaError(self.trouble)
        return self.found

    async def describe(self, name, nodes):
        if self.trouble is not None:
            raise PomonaError(self.trouble)
        return model_samples.held(name.rpartition("/")[2], name.partition("/")[0], 48, 0, 2**34)

    async def folder(self, order, nodes):
        self.wishes.append(("folder", order.repository or order.name))
        return Path(order.name)

    async def order_of(self, folder):
        return ModelOrder(folder.name, "", self.revision)

    async def remove(self, order, node):
        self.wishes.append(("remove", order.name, node.resources.name if node is not None else None))
        if self.trouble is not None:
            raise PomonaError(self.trouble)
        node_id = node.resources.node_id if node is not None else self.node_id
        place = self.places[node_id]
        left = tuple(one for one in place.models if one.name != order.name)
        self.places[node_id] = place._replace(models=left)
        return 1

    async def fetch_full(self, order, node, in_reach, on_fetch):
        self.wishes.append(("full", order.name, node.resources.name))
        await self._fetch([node], on_fetch)

    async def fetch_plan(self, folder, plan, in_reach, on_fetch):
        self.wishes.append(("plan", folder.name, [stage.layer_count for stage in plan.stages]))
        await self._fetch(in_reach, on_fetch)

    async def _fetch(self, nodes, on_fetch):
        for node in nodes:
            on_fetch(node, f"{node.resources.name}: has 0 of 30 layers; 1.0 GB from the hub", None)
            on_fetch(node, "", FetchProgress(2**29, 2**30, 2.0**28, 2.0, {}))
        if self.trouble is not None:
            raise PomonaError(self.trouble)
        while not self.done.is_set():  # noqa: ASYNC110  the test's thread sets it
            await asyncio.sleep(0.01)

    async def forget_unfinished(self, order, nodes):
        self.wishes.append(("forget", order.name, [node.resources.name for node in nodes]))

    def keeping(self):
        return Keeping(self.kept_in or Path("/data/models"), self.kept_in is None, 2**38, self.token, bool(self.token))

    def keep_token(self, token):
        self.token = token

    def choose_folder(self, folder):
        if self.trouble is not None:
            raise PomonaError(self.trouble)
        self.kept_in = folder


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
        self.models = ScriptedModels()
        self.preferences = None  # those with which the last session was started
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
            models=lambda _home: self.models,
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

    async def _start_session(self, plan, _folder, _nodes, _home, preferences):
        self.preferences = preferences
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
