"""What a process has done, as its agent sees it from outside."""

import subprocess
import sys
import time

from resources.processes import work_done

WAITS = "input()"
WORKS = "while True: open('/dev/zero', 'rb').read(1000)"


def changed_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    time.sleep(1.0)  # it has started by then
    before = work_done(process.pid)
    time.sleep(seconds)
    return work_done(process.pid) != before


def test_a_process_that_waits_does_nothing_and_one_that_works_does():
    for program, works in ((WAITS, False), (WORKS, True)):
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
            try:
                assert changed_within(process, 0.5) == works
            finally:
                process.kill()


def test_one_that_is_gone_has_done_nothing_that_could_be_told():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert work_done(process.pid) is None
