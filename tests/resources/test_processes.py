"""What a process has done, as its agent sees it from outside."""

import subprocess
import sys
import time

from resources.processes import work_done

STARTED = "print('started', flush=True)\n"
WAITS = STARTED + "input()"
WORKS = STARTED + "while True: open('/dev/zero', 'rb').read(1000)"
SETTLED_SECONDS, WATCHED_SECONDS = 0.2, 0.5
"""It may still be on its way to where it waits; then it is looked at twice."""


def changes(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(SETTLED_SECONDS)
    before = work_done(process.pid)
    time.sleep(WATCHED_SECONDS)
    return work_done(process.pid) != before


def test_a_process_that_waits_does_nothing_and_one_that_works_does():
    for program, works in ((WAITS, False), (WORKS, True)):
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe) as process:
            try:
                assert changes(process) == works
            finally:
                process.kill()


def test_one_that_is_gone_has_done_nothing_that_could_be_told():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert work_done(process.pid) is None
