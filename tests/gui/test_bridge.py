"""The thread between window and cluster: nothing lost, nothing left."""

import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from gui import samples
from gui.bridge import Bridge
from gui.preview import make_preview
from gui.split.model import Split
from runtime.cluster.messages import Chat, ChatMessage, Ended, Failed, Finished, Ready, Text, Throughput
from runtime.errors import PomonaError
from tests.gui.scripted import ScriptedServices

NODES = samples.virtual_nodes()
PREVIEW = make_preview(samples.SMALL_MODEL, [node.resources for node in NODES], Split((5, 18, 7)), "pipeline")
QUESTION = Chat("1", (ChatMessage("user", "What is the capital of France?"),))


@contextmanager
def running(script):
    """A bridge whose thread runs, and its messages."""
    bridge = Bridge(Path("home"), Path("model"), script.services())
    messages: list[object] = []
    bridge.session_message.connect(messages.append)
    bridge.start()
    try:
        yield bridge, messages
    finally:
        bridge.shutdown()
        assert bridge.join(5)


def start(qtbot, bridge, messages):
    bridge.start_session(PREVIEW.plan, NODES)
    qtbot.waitUntil(lambda: any(isinstance(one, Ready) for one in messages))


def over(messages):
    return lambda: any(isinstance(one, Failed | Ended) for one in messages)


def test_nodes_and_layout_arrive_in_the_windows_thread(qtbot):
    script = ScriptedServices()
    bridge = Bridge(Path("home"), Path("model"), script.services())
    seen: dict[str, object] = {}
    bridge.nodes_changed.connect(lambda nodes: seen.update(nodes=nodes, thread=threading.current_thread()))
    bridge.layout_read.connect(lambda layout: seen.update(layout=layout))
    bridge.start()
    qtbot.waitUntil(lambda: {"nodes", "layout"} <= seen.keys())
    assert seen["nodes"] == NODES
    assert seen["layout"] == samples.SMALL_MODEL
    bridge.shutdown()
    assert bridge.join(5)
    assert script.watcher_closed


def test_what_works_behind_the_window_is_started_beside_all_else_and_awaited_at_the_end(qtbot):
    go_on = threading.Event()
    threads: list[object] = []

    def behind():
        threads.append(threading.current_thread())
        assert go_on.wait(5)
        threads.append("over")

    bridge = Bridge(Path("home"), None, ScriptedServices().services(), behind=behind, demo=True)
    layouts: list[object] = []
    bridge.layout_read.connect(layouts.append)
    bridge.start()
    qtbot.waitUntil(lambda: bool(layouts and threads))
    assert threads[0] is not threading.main_thread()
    bridge.shutdown()
    assert not bridge.join(0.2)
    go_on.set()
    assert bridge.join(5)
    assert threads[-1] == "over"


def test_what_cannot_be_started_behind_the_window_is_said_and_the_rest_works(qtbot):
    def behind():
        raise PomonaError("This machine's agent did not start: the disk is full.")

    script = ScriptedServices()
    bridge = Bridge(Path("home"), Path("model"), script.services(), behind=behind)
    said: list[str] = []
    seen: list[object] = []
    bridge.trouble.connect(said.append)
    bridge.nodes_changed.connect(seen.append)
    bridge.start()
    qtbot.waitUntil(lambda: bool(said and seen))
    assert said == ["This machine's agent did not start: the disk is full."]
    bridge.shutdown()
    assert bridge.join(5)


def test_a_question_is_answered(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        bridge.ask(QUESTION)
        qtbot.waitUntil(lambda: any(isinstance(one, Finished) for one in messages))
    text = "".join(one.text for one in messages if isinstance(one, Text))
    assert text.strip() == "The capital is **Paris**."
    assert script.sessions[0].sent == [QUESTION]


def test_a_thousand_messages_reach_the_window_as_few(qtbot):
    script = ScriptedServices(answer=" ".join(["word"] * 1000))
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        bridge.ask(QUESTION)
        qtbot.waitUntil(lambda: any(isinstance(one, Finished) for one in messages))
        bridge.stop_session()
        qtbot.waitUntil(over(messages))
    texts = [one for one in messages if isinstance(one, Text)]
    assert sum(len(one.token_ids) for one in texts) == 1000
    assert len(texts) < 50
    assert len([one for one in messages if isinstance(one, Throughput)]) < 5


def test_stop_ends_the_session_and_closes_it(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        bridge.stop_session()
        qtbot.waitUntil(over(messages))
        assert messages[-1] == Ended()
        assert script.sessions[0].closed


def test_a_session_can_be_cancelled_while_it_starts(qtbot):
    script = ScriptedServices(hang=True)
    with running(script) as (bridge, messages):
        bridge.start_session(PREVIEW.plan, NODES)
        bridge.stop_session()
        qtbot.waitUntil(over(messages))
        assert messages == [Ended()]


def test_a_session_that_cannot_start_fails_with_its_own_sentence(qtbot):
    with running(ScriptedServices(refuse="Virtual B is asleep.")) as (bridge, messages):
        bridge.start_session(PREVIEW.plan, NODES)
        qtbot.waitUntil(over(messages))
        assert messages == [Failed("Virtual B is asleep.")]


def test_a_failure_of_the_session_arrives_once_and_closes_it(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        failure = Failed("Virtual B stopped answering.", "virtual-b")
        script.on_loop(script.sessions[0].say, failure)
        qtbot.waitUntil(over(messages))
        qtbot.waitUntil(lambda: script.sessions[0].closed)
    assert [one for one in messages if isinstance(one, Failed | Ended)] == [failure]


def test_shutdown_lets_a_failed_session_finish_its_cleaning_up(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        script.sessions[0].close_seconds = 0.3
        script.on_loop(script.sessions[0].say, Failed("Virtual B stopped answering.", "virtual-b"))
        qtbot.waitUntil(over(messages))
        assert not script.sessions[0].closed
        bridge.stop_session()
    assert script.sessions[0].closed


def test_the_end_that_was_asked_for_is_told_when_nothing_is_left(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        script.sessions[0].close_seconds = 0.2
        closed_when_told = []
        bridge.session_message.connect(lambda _: closed_when_told.append(script.sessions[0].closed))
        bridge.stop_session()
        qtbot.waitUntil(over(messages))
    assert closed_when_told[-1]


def test_a_start_right_after_a_failure_waits_for_the_cleaning_up_and_can_be_cancelled(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
        script.sessions[0].close_seconds = 0.2
        script.on_loop(script.sessions[0].say, Failed("Virtual B stopped answering.", "virtual-b"))
        qtbot.waitUntil(over(messages))
        messages.clear()
        bridge.start_session(PREVIEW.plan, NODES)
        bridge.stop_session()
        qtbot.waitUntil(over(messages))
        assert messages == [Ended()]
    assert len(script.sessions) == 1
    assert script.sessions[0].closed


def test_starting_and_cancelling_in_a_hurry_ends_every_session(qtbot):
    script = ScriptedServices(hang=True)
    with running(script) as (bridge, messages):
        for _ in range(3):
            bridge.start_session(PREVIEW.plan, NODES)
            bridge.stop_session()
        qtbot.waitUntil(lambda: messages == [Ended()] * 3)
    assert script.sessions == []


def test_after_a_session_another_can_start(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        for _ in range(2):
            messages.clear()
            start(qtbot, bridge, messages)
            bridge.stop_session()
            qtbot.waitUntil(over(messages))
    assert len(script.sessions) == 2


def test_a_question_without_a_session_is_trouble_in_words(qtbot):
    with running(ScriptedServices()) as (bridge, _), qtbot.waitSignal(bridge.trouble) as trouble:
        bridge.ask(QUESTION)
    assert "not running" in trouble.args[0]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PomonaError("There is no model in this folder."), "There is no model in this folder."),
        (ZeroDivisionError("division by zero"), "Something inside Pomona went wrong: division by zero."),
    ],
)
def test_what_goes_wrong_in_the_thread_is_said_and_logged(qtbot, caplog, error, words):
    caplog.set_level("INFO")
    script = ScriptedServices()
    script.layout_error = error
    bridge = Bridge(Path("home"), Path("model"), script.services())
    with qtbot.waitSignal(bridge.trouble) as trouble:
        bridge.start()
    assert trouble.args[0].startswith(words)
    bridge.shutdown()
    assert bridge.join(5)
    assert any(record.exc_info for record in caplog.records)


def test_shutdown_ends_a_running_session(qtbot):
    script = ScriptedServices()
    with running(script) as (bridge, messages):
        start(qtbot, bridge, messages)
    assert script.sessions[0].closed
    assert not bridge.running


def test_shutdown_ends_a_session_that_still_starts(qtbot):
    script = ScriptedServices(hang=True)
    with running(script) as (bridge, _):
        bridge.start_session(PREVIEW.plan, NODES)
        qtbot.waitUntil(lambda: script.loop is not None)
    assert not bridge.running


def test_commands_after_the_end_are_harmless(qtbot):
    with running(ScriptedServices()) as (bridge, _):
        pass
    bridge.ask(QUESTION)
    bridge.stop_session()
    bridge.shutdown()
    assert bridge.join(1)
