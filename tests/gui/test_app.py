"""The process of the window: it comes up, and goes down clean when the terminal asks."""

import signal
import subprocess
import sys

import pytest

UP = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from gui.app import make_application, run_window
make_application([])
QTimer.singleShot(400, lambda: print("up", flush=True))
sys.exit(run_window(Path(sys.argv[1]) / "home", Path(sys.argv[1])))
"""


@pytest.mark.parametrize("after_ms", [0, 400], ids=["while it is first painted", "once it is up"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_from_the_terminal_closes_the_window_cleanly(tmp_path, number, after_ms):
    process = subprocess.Popen(
        [sys.executable, "-c", UP.replace("400", str(after_ms)), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


def test_an_exception_in_a_slot_becomes_a_sentence_in_the_window(tmp_path):
    code = UP.replace(
        'print("up", flush=True)',
        "fail()",
    ).replace(
        "make_application([])",
        """
app = make_application([])
def fail():
    window = next(one for one in app.topLevelWidgets() if one.objectName() == "" and hasattr(one, "banner"))
    if not window.banner.words:  # what is wrong with the folder is said first
        QTimer.singleShot(50, fail)
        return
    QTimer.singleShot(200, lambda: (print(window.banner.words, flush=True), window.close()))
    raise ZeroDivisionError("division by zero")
""",
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "division by zero" in result.stdout
