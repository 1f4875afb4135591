"""What a session tells a front end that comes later, and where it finds it."""

import os
import subprocess
import sys

import pytest

from gui import samples
from runtime.cluster.messages import Chat, ChatMessage, Finished, Rejected, Text
from runtime.cluster.running_note import SESSION_FILE, RunningNote, noted_session, running_session
from runtime.cluster.transcript import KEPT_REQUESTS, Transcript


def chat(name):
    return Chat(name, (ChatMessage("user", f"question {name}"),))


def test_answers_are_told_whole_and_half_in_their_order():
    transcript = Transcript()
    for name in ("a", "b", "c"):
        transcript.begin(chat(name))
    end = Finished("a", "stop", 3, 2, 0.1, 20.0)
    for message in (
        Text("a", "One ", (1,)),
        Text("b", "Half", (2,)),
        Text("a", "two", (3,)),
        end,
        Rejected("c", "No."),
    ):
        transcript.take(message)
    told = transcript.answered()
    assert [(one.chat.request_id, one.text, one.finished, one.error) for one in told] == [
        ("a", "One two", end, ""),
        ("b", "Half", None, ""),
        ("c", "", None, "No."),
    ]


def test_the_oldest_are_forgotten_and_answers_of_others_are_not_kept():
    transcript = Transcript()
    for number in range(KEPT_REQUESTS + 5):
        transcript.begin(chat(str(number)))
    transcript.take(Text("of another front end", "x", (1,)))
    assert [one.chat.request_id for one in transcript.answered()] == [str(n) for n in range(5, KEPT_REQUESTS + 5)]


@pytest.fixture
def note():
    nodes = samples.virtual_nodes()
    plan = samples.plan_over(samples.SMALL_MODEL, [node.resources for node in nodes], (5, 18, 7))
    return RunningNote(4711, "secret", os.getpid(), "/models/a", plan, nodes)


def test_a_running_session_is_found_for_as_long_as_it_runs(tmp_path, note):
    assert running_session(tmp_path) is None
    with noted_session(tmp_path, note):
        assert running_session(tmp_path) == note
        assert (tmp_path / SESSION_FILE.name).stat().st_mode & 0o077 == 0
    assert running_session(tmp_path) is None


def test_a_note_whose_process_is_gone_is_no_session(tmp_path, note):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = RunningNote(note.port, note.key, gone.pid, note.model_folder, note.plan, note.nodes)
    with noted_session(tmp_path, dead):
        assert running_session(tmp_path) is None


def test_a_damaged_note_is_none(tmp_path):
    (tmp_path / SESSION_FILE.name).write_bytes(b"{")
    assert running_session(tmp_path) is None
