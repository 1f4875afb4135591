"""The words by which a process of Pomona starts another one."""

import subprocess
import sys

from resources import starting


def test_from_a_checkout_a_python_is_called():
    assert starting.pomona("agent", "--owned") == (sys.executable, "-P", "-m", "pomona", "agent", "--owned")
    assert starting.engine("cache_probe") == starting.pomona("engine", "cache_probe")


def test_in_the_frozen_app_its_executable_takes_the_same_words(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert starting.pomona("worker", "--rank", "0") == (sys.executable, "worker", "--rank", "0")


def test_the_system_starts_the_launcher_of_the_light_app(monkeypatch):
    assert starting.launcher("agent") == starting.pomona("agent")
    monkeypatch.setenv(starting.LAUNCHER_VARIABLE, "/Applications/Pomona.app/Contents/MacOS/Pomona")
    assert starting.launcher("agent") == ("/Applications/Pomona.app/Contents/MacOS/Pomona", "agent")


def test_a_module_of_the_engine_runs_by_itself(tmp_path):
    words = starting.engine("convert_gguf", str(tmp_path / "nothing.gguf"), str(tmp_path))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "There is no file" in done.stderr
    assert "Traceback" not in done.stderr
