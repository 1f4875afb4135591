"""The states of a session that are rendered, each brought about as a person and a cluster would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui import samples

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.cluster.messages import LoadPhase
    from runtime.planning.values import Plan

ANSWER = """**Pipeline split.** The first node holds `layers 0–4`, so reading a question is bound by *its* bandwidth.

1. Move the boundary left until *Virtual B* reads **Tight**
2. Keep 10 % spare for the KV cache

```python
def hop_cost(hidden: int, link: float) -> float:
    return hidden * 2 / link  # seconds per token
```

| node | layers | GB |
|---|---|---|
| Studio Ultra | 32 | 162.9 |
| Studio Max | 19 | 103.7 |
"""


def demo(window: Window) -> None:
    """Three virtual nodes, ready to start."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())


def macs(window: Window) -> None:
    """Four Macs and a model that fits in none of them."""
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.macs())
    for boundary, cut in ((2, 57), (1, 51), (0, 32)):
        window.store.move_boundary(boundary, cut)


def loading(window: Window) -> None:
    """Workers start, load and wait."""
    macs(window)
    window.start_session()
    states: tuple[tuple[LoadPhase, float], ...] = (
        ("loading", 0.62),
        ("loading", 0.48),
        ("ready", 1.0),
        ("warming up", 1.0),
    )
    for message in samples.loading(_plan(window), states):
        window.receive(message)


def fetching(window: Window) -> None:
    """Nodes get what their layers need."""
    from runtime.cluster.messages import ModelFetch

    macs(window)
    window.start_session()
    for node, done, total in (("studio-max", 61, 98), ("macbook-pro", 18, 31), ("mac-mini", 3, 21)):
        gib = 2**30
        window.receive(ModelFetch(node, node, "", done * gib, total * gib, gib * 1.1, (total - done) / 1.1))


def running(window: Window) -> None:
    """A session with a chat that streams."""
    from runtime.cluster.messages import Serving

    demo(window)
    for boundary, cut in ((0, 5), (1, 23)):
        window.store.move_boundary(boundary, cut)
    _run(window)
    _ask(window, "What is the capital of France?")
    _answer(window, "The capital of France is **Paris**.")
    _ask(window, "How should I split this model?")
    _answer(window, ANSWER)
    _measure(window, 34)
    window.receive(Serving("http://127.0.0.1:52520/v1", "smollm2-135m-instruct"))


def stages(window: Window) -> None:
    """What each stage takes, beside what was predicted."""
    running(window)
    window.live.show_tab("stages")


def memory(window: Window) -> None:
    """What each node holds."""
    running_macs(window)
    window.live.show_tab("memory")


def running_macs(window: Window) -> None:
    """The same on four Macs, with a first answer on its way."""
    macs(window)
    _run(window)
    _ask(window, "Why is the sky blue? Explain it to a child, in three short paragraphs.")
    _measure(window, 75)


def edited(window: Window) -> None:
    """Another split is shown than the one that runs, and can be applied."""
    running(window)
    window.store.move_boundary(0, 9)
    window.store.move_boundary(1, 20)


def rebalancing(window: Window) -> None:
    """A run was measured, and another split would be faster."""
    running(window)
    plan, store = _plan(window), window.store
    assert store.layout is not None
    then = samples.plan_over(store.layout, [known.resources for known in store.nodes], (3, 24, 3))
    window.receive(samples.run_measured(plan, then))


def changing(window: Window) -> None:
    """It is applied, in the middle of an answer."""
    edited(window)
    _begin_answer(window)
    plan = window.store.pending
    assert plan is not None
    window.desk.apply()
    for message in samples.loading(plan, (("ready", 1.0), ("connecting", 0.4), ("loading", 0.55))):
        window.receive(message)


def lost(window: Window) -> None:
    """A node is lost and the session goes over to what is left."""
    from runtime.cluster.messages import Recovering

    running(window)
    _begin_answer(window)
    window.receive(Recovering("Virtual B is gone: it was quit, went to sleep or lost its network.", "virtual-b"))


def went_on(window: Window) -> None:
    """The session goes on without it, and so does the answer."""
    from runtime.cluster.messages import Text

    lost(window)
    nodes = [node.resources for node in samples.virtual_nodes() if node.resources.name != "Virtual B"]
    plan = samples.plan_over(samples.SMALL_MODEL, nodes, (14, 16))
    window.receive(samples.ready(plan))
    request = window.chat.exchanges[-1].request_id
    window.receive(Text(request, " a lighthouse whose keeper had a cat.", (1, 2, 3)))
    window.receive(samples.finished(request, tokens_per_second=samples.near(plan)))


def failed(window: Window) -> None:
    """A node went away in the middle of an answer."""
    from runtime.cluster.messages import Failed

    running(window)
    _begin_answer(window)
    reason = "Virtual B stopped answering, so the session ended. Look at that Mac, then start again."
    window.receive(Failed(reason, "virtual-b"))


def _run(window: Window) -> None:
    window.start_session()
    window.receive(samples.ready(_plan(window)))


def _plan(window: Window) -> Plan:
    plan = window.store.session.plan
    assert plan is not None  # it runs
    return plan


def _measure(window: Window, seconds: float) -> None:
    plan = _plan(window)
    mean = samples.near(plan)
    for sample in samples.throughput(seconds, mean):
        window.receive(sample)
    for counted in samples.counters(plan, seconds, mean):
        window.receive(counted)


def _ask(window: Window, question: str) -> None:
    window.chat.composer.box.setPlainText(question)
    window.chat.composer.button.click()


def _begin_answer(window: Window) -> None:
    """A question whose answer is half said."""
    from runtime.cluster.messages import Text

    _ask(window, "Tell me a story about a lighthouse.")
    request = window.chat.exchanges[-1].request_id
    window.receive(Text(request, "Once, on a rock far out at sea, there stood", (1, 2, 3), 45))


def _answer(window: Window, text: str) -> None:
    from runtime.cluster.messages import Text

    request = window.chat.exchanges[-1].request_id
    for start in range(0, len(text), 9):
        window.receive(Text(request, text[start : start + 9], (1, 2)))
    window.receive(samples.finished(request, tokens_per_second=samples.near(_plan(window))))


def settle(window: Window) -> None:
    """Show the window and let Qt do what is due."""
    from PySide6.QtWidgets import QApplication

    window.show()
    for _ in range(6):
        QApplication.processEvents()


def logs(window: Window) -> None:
    """What a job wrote, in which a node failed."""
    from gui import pane_samples

    running(window)
    window.show_pane("log")
    window.logs.show_logs(pane_samples.logs())


def logs_enlarged(window: Window) -> None:
    """The same in the place of the split, and filtered."""
    logs(window)
    window.deck.set_enlarged(on=True)
    window.logs.words.setText("worker")


def bench_empty(window: Window) -> None:
    """Nothing is measured yet."""
    running(window)
    window.show_pane("bench")


def bench(window: Window) -> None:
    """Two splits were measured one after the other; an even one is faster with many clients."""
    from gui import pane_samples
    from gui.bench.words import compared_words
    from runtime.bench.order import BenchOrder, RoundDone

    bench_empty(window)
    store = window.store
    assert store.layout is not None
    even = samples.plan_over(store.layout, [known.resources for known in store.nodes], (10, 10, 10))
    order = BenchOrder((512, 4096), 128, (1, 4))
    for held in (store.session.held, samples.ready(even).ranks):
        for told in pane_samples.bench(held, order):
            if not isinstance(told, RoundDone):
                window.bench.add_row(told)
    rows = window.bench.table.rows
    window.bench.say(compared_words(rows[0], rows[4]))


def bench_running(window: Window) -> None:
    """Rounds are measured."""
    from gui import pane_samples
    from runtime.bench.order import BenchOrder

    bench_empty(window)
    order = BenchOrder((512,), 128, (1, 4))
    window.benching.start(order, "")
    for told in list(pane_samples.bench(window.store.session.held, order))[:7]:
        window.benching.tell(told)


def clients(window: Window) -> None:
    """Settings for programs."""
    running(window)
    window.show_clients()


def bench_small(window: Window) -> None:
    """The benchmark in the smallest window, with a server's address beside the figures."""
    bench(window)
    window.resize(1024, 700)


def logs_small(window: Window) -> None:
    """The log in the smallest window."""
    logs(window)
    window.resize(1024, 700)
