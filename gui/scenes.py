"""The states of the window that are rendered, each brought about as a person and a cluster would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discovery.local_network import Verdict
from gui import samples
from gui.formatting import GIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.window import Window
    from runtime.cluster.messages import LoadPhase

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


def welcome(window: Window) -> None:
    """No model is chosen; some are on this machine."""
    window.models.show_models(samples.model_choices())
    window.show_nodes(samples.macs())


def empty(window: Window) -> None:
    """The model is read, no node is in reach."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(())


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


def memory_cap(window: Window) -> None:
    """How much of a MacBook's memory Pomona may use, and what its card makes of that."""
    macs(window)
    window.show_nodes(samples.capped_macs())
    window.memory.open("macbook-pro")


def nearby(window: Window) -> None:
    """Machines that are not paired, and the dialog that asks for a code."""
    macs(window)
    window.show_unpaired(samples.unpaired("Mia’s Mac mini", "Studio in the attic", "Old MacBook of the whole office"))
    window.trust.open_pairing(samples.unpaired("Mia’s Mac mini")[0])
    dialog = window.trust.pairing
    assert dialog is not None
    dialog.field.setText("123456")
    dialog.failed("The code is wrong, or another machine answers in the name of Mia’s Mac mini; look at it again.")


def code(window: Window) -> None:
    """This machine shows its code."""
    from runtime.agent.trust_messages import ShownCode

    demo(window)
    window.trust.open_code()
    window.trust.code_shown(ShownCode("048213", 104.0), "")


def address(window: Window) -> None:
    """An address that is none."""
    empty(window)
    window.trust.open_address()
    dialog = window.trust.address
    assert dialog is not None
    dialog.field.setText("192.168.1.300")
    dialog.add.click()


def dragged(window: Window) -> None:
    """A boundary under the mouse, and a node that is left out."""
    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest

    demo(window)
    settle(window)
    handle = window.editor.handles[1]
    middle = QPoint(handle.width() // 2, handle.height() // 2)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(handle, middle + QPoint(-500, 0))


def over(window: Window) -> None:
    """One Mac lacks memory, which keeps Start from starting; a boundary has the keyboard."""
    macs(window)
    window.store.move_boundary(0, 26)
    window.editor.handles[2].setFocus()


def verified(window: Window) -> None:
    """A split that was checked against the whole model."""
    from runtime.check.result import CheckResult, versions

    demo(window)
    split = window.store.split.counts
    found = CheckResult(samples.SMALL_MODEL.name, split, "pipeline", versions(), True, 0.0, 96, 16)
    window.show_checks({("pipeline", split): found})


def fastest(window: Window) -> None:
    """The fastest chat leaves the slow node out; it can be put back in."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    window.store.choose_goal("chat")


def tensor(window: Window) -> None:
    """Tensor mode."""
    demo(window)
    window.store.set_mode("tensor")


def tensor_refused(window: Window) -> None:
    """Tensor mode over a number of nodes that cannot share the heads."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.macs())
    window.store.set_mode("tensor")


def loading(window: Window) -> None:
    """Workers start, load and wait."""
    macs(window)
    window.start_session()
    plan = window.store.session.plan
    assert plan is not None
    states: tuple[tuple[LoadPhase, float], ...] = (
        ("loading", 0.62),
        ("loading", 0.48),
        ("ready", 1.0),
        ("warming up", 1.0),
    )
    for message in samples.loading(plan, states):
        window.receive(message)


def running(window: Window) -> None:
    """A session with a chat that streams."""
    demo(window)
    for boundary, cut in ((0, 5), (1, 23)):
        window.store.move_boundary(boundary, cut)
    _run(window)
    _ask(window, "What is the capital of France?")
    _answer(window, "The capital of France is **Paris**.")
    _ask(window, "How should I split this model?")
    _answer(window, ANSWER)
    _measure(window, 34)


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
    _measure(window, 75, 18.0)


def edited(window: Window) -> None:
    """Another split is shown than the one that runs, and can be applied."""
    running(window)
    window.store.move_boundary(0, 9)
    window.store.move_boundary(1, 20)


def rebalancing(window: Window) -> None:
    """A run was measured, and another split would be faster."""
    running(window)
    plan, store = window.store.session.plan, window.store
    assert plan is not None
    assert store.layout is not None
    then = samples.plan_over(store.layout, [known.resources for known in store.nodes], (3, 24, 3))
    window.receive(samples.run_measured(plan, then))


def group_offered(window: Window) -> None:
    """The fastest chat, and the group that would be faster still."""
    nodes, links = samples.like_nodes()
    window.show_layout(samples.of_layers(61, int(1.1 * GIB)))
    window.show_nodes(nodes)
    window.store.set_links(links)
    window.store.choose_goal("chat")


def grouped(window: Window) -> None:
    """Two Macs that are alike share the layers of a stage, because that is faster."""
    group_offered(window)
    window.store.take_offer()


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
    window.receive(samples.finished(request))


def failed(window: Window) -> None:
    """A node went away in the middle of an answer."""
    from runtime.cluster.messages import Failed

    running(window)
    _begin_answer(window)
    reason = "Virtual B stopped answering, so the session ended. Look at that Mac, then start again."
    window.receive(Failed(reason, "virtual-b"))


def many(window: Window) -> None:
    """Sixteen nodes and two hundred layers."""
    window.show_layout(samples.of_layers(200, 2**30))
    window.show_nodes(samples.many_nodes(16))


def this_mac(window: Window) -> None:
    """The network's test found that macOS does not let Pomona speak."""
    macs(window)
    window.trust.open_this_mac()
    window.trust.network_checked(Verdict.PERMISSION_OFF)
    window.trust.sharing_told(True, "", "")


def about(window: Window) -> None:
    """What it is, and the way to the licences."""
    demo(window)
    window.show_about()


def small(window: Window) -> None:
    """The smallest window that is promised."""
    over(window)
    window.resize(1024, 700)


SCENES: tuple[Callable[[Window], None], ...] = (
    welcome,
    empty,
    demo,
    macs,
    memory_cap,
    nearby,
    code,
    address,
    dragged,
    over,
    verified,
    fastest,
    tensor,
    tensor_refused,
    loading,
    running,
    running_macs,
    stages,
    memory,
    edited,
    rebalancing,
    group_offered,
    grouped,
    changing,
    lost,
    went_on,
    failed,
    many,
    about,
    this_mac,
    small,
)


def _run(window: Window) -> None:
    window.start_session()
    plan = window.store.session.plan
    assert plan is not None
    window.receive(samples.ready(plan))


def _measure(window: Window, seconds: float, mean: float = 31.0) -> None:
    plan = window.store.session.plan
    assert plan is not None
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
    window.receive(Text(request, "Once, on a rock far out at sea, there stood", (1, 2, 3)))


def _answer(window: Window, text: str) -> None:
    from runtime.cluster.messages import Text

    request = window.chat.exchanges[-1].request_id
    for start in range(0, len(text), 9):
        window.receive(Text(request, text[start : start + 9], (1, 2)))
    window.receive(samples.finished(request))


def settle(window: Window) -> None:
    """Show the window and let Qt do what is due."""
    from PySide6.QtWidgets import QApplication

    window.show()
    for _ in range(6):
        QApplication.processEvents()
