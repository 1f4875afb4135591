"""A model that runs: another split is applied, a node is lost, two splits are compared, an old session is found."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from gui import samples
from gui.chat.compare import Step
from gui.session import Phase
from runtime.cluster.messages import Answered, Chat, ChatMessage, Failed, PlanRefused, Recovering, Serving, Text
from runtime.cluster.running_note import RunningNote
from tests.gui.scripted import ScriptedServices, ScriptedSession, bridged
from tests.gui.test_window import press


@pytest.fixture
def running(demo_window):
    """A session with 5 | 18 | 7."""
    store = demo_window.store
    store.move_boundary(0, 5)
    store.move_boundary(1, 23)
    demo_window.start_session()
    demo_window.receive(samples.ready(store.session.plan))
    return demo_window


def counts(window):
    return window.editor.view.counts


def ask(window, question="Tell me a story"):
    QTest.keyClicks(window.chat.composer.box, question)
    QTest.keyClick(window.chat.composer.box, Qt.Key.Key_Return)
    return window.chat.exchanges[-1].request_id


def step(window):
    return window.comparison.step


def has(window, name):
    return window.findChild(QPushButton, name) is not None


def test_a_moved_boundary_offers_to_apply_it_and_says_what_that_takes(running, qtbot):
    assert not running.strip.view.edited
    running.store.move_boundary(0, 7)
    assert running.strip.view.apply_words == "loads 2 layers on Virtual A, about 1 s; chats go on"
    request = ask(running)
    running.receive(Text(request, "Once", (1,)))
    with qtbot.waitSignal(running.resplit_wanted) as wanted:
        press(running, "apply_button")
    plan, nodes = wanted.args
    assert [stage.layer_count for stage in plan.stages] == [7, 16, 7]
    assert nodes == running.store.nodes
    assert "Changing the split" in running.header.status.text()
    assert running.chat.answers[-1].footer.startswith("The split changes")
    assert not running.editor.handles[0].isEnabled()
    running.receive(samples.ready(plan))
    running.receive(Text(request, " upon", (2,)))
    running.receive(samples.finished(request))
    assert running.chat.answers[-1].text == "Once upon"
    assert "The split changed in" in running.header.status.text()
    assert not running.strip.view.edited
    assert running.editor.handles[0].isEnabled()


def test_what_runs_can_be_shown_again(running):
    running.store.choose_goal("even")
    assert counts(running) == (10, 10, 10)
    press(running, "revert_button")
    assert counts(running) == (5, 18, 7)
    running.menus.undo.trigger()
    assert counts(running) == (10, 10, 10)


def test_a_split_that_does_not_fit_cannot_be_applied_and_says_why(running):
    nodes = list(samples.virtual_nodes())
    nodes[0] = samples.node("Virtual A", "Apple M4 Pro", 0.1, 0.01, virtual=True)
    running.show_nodes(tuple(nodes))
    running.store.move_boundary(0, 20)
    assert running.store.pending is None
    assert not has(running, "apply_button")
    assert "cannot be applied" in running.header.status.text()


def test_a_change_that_is_refused_is_told_and_the_session_goes_on(running):
    running.store.move_boundary(0, 7)
    running.desk.apply()
    running.receive(PlanRefused("The model is being loaded."))
    assert running.banner.words == "The split was not changed: The model is being loaded."
    assert running.store.session.can_change


def test_a_node_that_comes_while_a_model_runs_can_be_given_layers(running):
    running.show_nodes((*samples.virtual_nodes(), samples.node("Virtual D", "M4", 1, 1, virtual=True)))
    assert counts(running) == (5, 18, 7, 0)
    running.store.move_boundary(2, 27)
    assert running.strip.view.apply_words.startswith("loads 3 layers on Virtual D")


def test_a_lost_node_is_named_and_the_answer_goes_on_without_it(running):
    request = ask(running)
    running.receive(Text(request, "Once", (1,)))
    running.receive(Recovering("Virtual B is gone: it was quit.", "virtual-b"))
    assert running.banner.words == "Virtual B is gone: it was quit. The session goes on with what is left."
    assert "Virtual B is gone" in running.chat.answers[-1].footer
    assert running.editor.cards[1].view.words == "Lost, going on without"
    left = [node.resources for node in samples.virtual_nodes() if node.resources.name != "Virtual B"]
    running.receive(samples.ready(samples.plan_over(samples.SMALL_MODEL, left, (14, 16))))
    assert counts(running) == (14, 16, 0)
    assert "It went on without Virtual B after" in running.header.status.text()
    assert running.banner.words.endswith("The session goes on with 14 | 16.")
    running.receive(Text(request, " upon", (2,)))
    running.receive(samples.finished(request))
    assert running.chat.answers[-1].text == "Once upon"
    assert running.chat.answers[-1].footer.endswith("went on without Virtual B")


def test_after_a_failure_the_model_is_loaded_again_or_without_the_node(running, qtbot):
    running.receive(Failed("Virtual B stopped answering.", "virtual-b"))
    with qtbot.waitSignal(running.session_wanted) as wanted:
        press(running, "banner_reload")
    assert [stage.layer_count for stage in wanted.args[0].stages] == [5, 18, 7]
    running.receive(Failed("Virtual B stopped answering.", "virtual-b"))
    with qtbot.waitSignal(running.session_wanted) as wanted:
        press(running, "banner_without")
    assert [stage.ranks[0].node_name for stage in wanted.args[0].stages] == ["Virtual A", "Virtual C"]
    assert not running.banner.isVisible()


def test_the_address_for_programs_can_be_copied(running):
    assert not running.strip.server.isVisible()
    running.receive(Serving("http://127.0.0.1:52520/v1", "smollm2", "secret"))
    assert running.strip.server.isVisible()
    press(running, "copy_address")
    assert QGuiApplication.clipboard().text() == "http://127.0.0.1:52520/v1"
    press(running, "copy_key")
    assert QGuiApplication.clipboard().text() == "secret"
    running.stop_session()
    assert not running.strip.server.isVisible()


def test_two_splits_are_compared_on_one_question(running):
    running.store.move_boundary(0, 9)
    running.comparison.run("Describe the sea.")
    first = running.chat.exchanges[-1].request_id
    running.receive(Text(first, "Blue", (1,)))
    running.receive(samples.finished(first))
    assert step(running) is Step.CHANGE
    running.receive(samples.ready(running.store.preview.plan))
    assert step(running) is Step.SECOND
    second = running.chat.exchanges[-1].request_id
    assert second != first
    running.receive(Text(second, "Blue", (1,)))
    running.receive(samples.finished(second))
    assert [exchange.split for exchange in running.chat.exchanges] == ["5 | 18 | 7", "9 | 14 | 7"]
    assert running.chat.answers[-1].footer.endswith("0% faster than on 5 | 18 | 7, same text")
    assert running.chat.book.shown.title == "Comparison: Describe the sea."
    assert step(running) is Step.NONE


def test_a_comparison_ends_with_its_session(running):
    running.store.move_boundary(0, 9)
    running.comparison.run("Describe the sea.")
    running.receive(Failed("Virtual B stopped answering.", "virtual-b"))
    assert step(running) is Step.NONE


def test_a_session_that_outlived_its_window_is_found_with_its_text(qtbot, window):
    nodes = samples.virtual_nodes()
    plan = samples.plan_over(samples.SMALL_MODEL, [node.resources for node in nodes], (5, 18, 7))
    script = ScriptedServices()
    script.running = RunningNote(1, "key", 1, "model", plan, nodes)
    session = script.attached = ScriptedSession(plan)
    session.say(Answered(Chat("old", (ChatMessage("user", "Tell me a story"),)), "Once upon"))
    session.say(Text("old", " a time", (1,)))
    with bridged(window, script):
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        qtbot.waitUntil(lambda: bool(window.chat.answers) and window.chat.answers[0].text == "Once upon a time")
        assert counts(window) == (5, 18, 7)
        assert window.chat.answering
        assert window.chat.exchanges[0].question == "Tell me a story"


def test_the_split_that_follows_from_a_run_is_shown_and_then_applied(running, qtbot):
    store = running.store
    then = samples.plan_over(store.layout, [known.resources for known in store.nodes], (3, 24, 3))
    running.receive(samples.run_measured(store.session.plan))
    assert store.strip_view.rebalance_words == ""
    assert "Virtual B: measured" in store.strip_view.tooltip
    running.receive(samples.run_measured(store.session.plan, then))
    assert store.strip_view.rebalance_words.endswith(": 23% more.")
    press(running, "rebalance_button")
    assert counts(running) == (3, 24, 3)
    assert store.strip_view.rebalance_words == ""
    with qtbot.waitSignal(running.resplit_wanted) as wanted:
        press(running, "apply_button")
    assert [stage.layer_count for stage in wanted.args[0].stages] == [3, 24, 3]
