"""kill -9 of the window while a chat streams: the model goes on, and the next window shows it with its text."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from runtime.agent.window_lock import WindowIsOpen, window_is_open, window_lock
from tests.running import runs

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(300)]

WINDOW = """
import sys
import threading
from PySide6.QtCore import QTimer
from gui.app import make_application, run_window
from gui.session import Phase
from runtime.cli.window import run_window_here

said = set()

def say(word, *values):
    if word not in said:
        said.add(word)
        print(word, *values, flush=True)

def open_window(home, behind):
    app = make_application([])
    timer = QTimer()

    def look():
        window = next((one for one in app.topLevelWidgets() if hasattr(one, "desk")), None)
        if window is None or not any(one.name == "pomona-asyncio" for one in threading.enumerate()):
            return  # a person's clicks wait until someone is there to do them, but not a timer's
        phase, chat = window.store.session.phase, window.chat
        if window.banner.words:
            say("trouble", window.banner.words)
        if window.store.layout is None and "chosen" not in said and {first}:
            window.welcome.demo.click()
            say("chosen")
        elif phase is Phase.IDLE and window.header.start.isEnabled() and "started" not in said and {first}:
            window.start_session()
            say("started")
        elif phase is Phase.RUNNING and "asked" not in said and {first}:
            chat.ask("Write a very long story about a fox and a crow.")
            say("asked")
        elif chat.answers and len(chat.answers[-1].text) > {enough}:
            say("text", repr(chat.answers[-1].text[:60]), phase.name, chat.exchanges[-1].question)
            if not {first}:
                window.close()

    timer.timeout.connect(look)
    timer.start(100)
    return run_window(home, behind=behind, ask_before_close=False)

sys.exit(run_window_here(open_window))
"""


def window_process(home, **values):
    code = WINDOW
    for name, value in values.items():
        code = code.replace(f"{{{name}}}", str(value))
    env = {**os.environ, "POMONA_HOME": str(home)}
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)


def words_until(process, word):
    heard = []
    for line in process.stdout:
        heard.append(line)
        if line.startswith(word):
            return line
        if line.startswith("trouble"):
            break
    raise AssertionError(f"the window said {heard} and no {word}")


def of_home(home, *commands):
    """Our processes that were started for this data folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("POMONA_HOME") == str(home) and any(runs(process, one) for one in commands):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_window_that_is_killed_leaves_the_model_to_the_next(tmp_path):
    home = tmp_path / "home"
    first = window_process(home, first=True, enough=80)
    windows = [first]
    try:
        words_until(first, "text")
        before = {process.pid for process in of_home(home, "controller", "worker", "agent")}
        assert len(before) == 3
        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(2.5)  # longer than an agent takes to see that no window is open
        assert {process.pid for process in of_home(home, "controller", "worker", "agent")} == before

        second = window_process(home, first=False, enough=200)
        windows.append(second)
        line = words_until(second, "text")
        assert "RUNNING Write a very long story" in line
        assert second.wait(60) == 0
    finally:
        for process in (*windows, *of_home(home, "agent")):
            process.kill()
    for process in windows:
        process.stdout.close()
    psutil.wait_procs(of_home(home, "controller", "worker", "agent"), 20)
    assert of_home(home, "controller", "worker", "agent") == []


def test_only_one_window_is_open_at_a_time(tmp_path):
    assert not window_is_open(tmp_path)
    with window_lock(tmp_path):
        assert window_is_open(tmp_path)
        with pytest.raises(WindowIsOpen), window_lock(tmp_path):
            pass
    assert not window_is_open(tmp_path)
