"""The demo on a real X server, by mouse and keys alone: dragged, started, asked, changed, asked again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not (shutil.which("Xvfb") and shutil.which("xdotool")), reason="needs Xvfb and xdotool"),
]

WAIT_SECONDS = 150
SIDE, WIDTH, LAYERS = 24, 1180 - 48, 30
BAR_Y = 165


class Screen:
    """An X server, and the hands of a person."""

    def __init__(self):
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x1000x24", "-nolisten", "tcp"],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as said:
            self.name = f":{said.readline().strip()}"

    def do(self, *words):
        subprocess.run(
            ["xdotool", *map(str, words)], env={**os.environ, "DISPLAY": self.name}, check=True, capture_output=True
        )

    def drag(self, start, end):
        self.do("mousemove", *start, "mousedown", 1)
        for part in (0.25, 0.5, 0.75, 1.0):
            self.do("mousemove", *(round(a + (b - a) * part) for a, b in zip(start, end, strict=True)))
            time.sleep(0.1)
        self.do("mouseup", 1)

    def close(self):
        self.server.terminate()
        self.server.wait()


@pytest.fixture
def screen():
    made = Screen()
    yield made
    made.close()


def exchanges(folder):
    """Those that the window has written down."""
    for path in folder.glob("*/window.json"):
        kept = json.loads(path.read_text())
        return [one for chat in kept["chats"] for one in chat["exchanges"]]
    return []


def finished(folder):
    return [one for one in exchanges(folder) if one["finished"]]


def until(done):
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline, "the window did not come that far"
        time.sleep(0.25)


def ask(screen, question):
    screen.do("key", "ctrl+l")
    screen.do("type", "--delay", 5, question)
    screen.do("key", "Return")


def boundary(layer):
    return SIDE + round(WIDTH * layer / LAYERS), BAR_Y


def test_a_person_at_a_screen(screen, tmp_path):
    env = {**os.environ, "DISPLAY": screen.name, "TMPDIR": str(tmp_path), "QT_QPA_PLATFORM": "xcb"}
    demo = subprocess.Popen([sys.executable, "-m", "pomona", "demo"], env=env, stderr=subprocess.DEVNULL)
    try:
        time.sleep(20)  # nothing outside of the window tells when the three nodes are in view
        screen.do("search", "--sync", "--onlyvisible", "--name", "Pomona", "windowfocus", "--sync")  # no window manager
        screen.do("mousemove", 600, 400)
        screen.drag(boundary(10), boundary(5))
        screen.do("key", "ctrl+r")
        time.sleep(25)
        ask(screen, "What is the capital of France?")
        until(lambda: len(finished(tmp_path)) == 1)
        assert finished(tmp_path)[0]["split"] == "5 | 15 | 10"
        assert "Paris" in finished(tmp_path)[0]["answer"]

        screen.drag(boundary(20), boundary(23))
        screen.do("key", "ctrl+Return")
        time.sleep(10)
        ask(screen, "And of Spain?")
        until(lambda: len(finished(tmp_path)) == 2)
        assert finished(tmp_path)[1]["split"] == "5 | 18 | 7"

        screen.do("key", "ctrl+period")
        time.sleep(5)
        screen.do("key", "ctrl+q")
        assert demo.wait(60) == 0
    finally:
        if demo.poll() is None:
            demo.send_signal(signal.SIGTERM)
            demo.wait(60)
