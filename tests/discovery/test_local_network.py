"""Who is to blame when no other machine is found: each case from what would be seen in it."""

import errno
import shutil
import socket
import subprocess

import pytest

from discovery import network_test
from discovery.address import HostPort
from discovery.local_network import Seen, Verdict, advice, judge

HERE = ("192.168.1.2", "169.254.7.7")
REFUSED, SENT = (errno.EHOSTUNREACH,) * 2, (0, 0)

CASES = {
    "somebody answered": (Seen(HERE, SENT, heard_itself=True, answers=1), Verdict.WORKS),
    "one network refuses, another answers": (Seen(HERE, (0, errno.ENETDOWN), answers=2), Verdict.WORKS),
    "no cable": (Seen(()), Verdict.NO_NETWORK),
    "switched off": (Seen(HERE, REFUSED, has_privacy=True, system="denies"), Verdict.PERMISSION_OFF),
    "not asked yet": (Seen(HERE, REFUSED, has_privacy=True), Verdict.PERMISSION_OFF),
    "off, seen by Bonjour alone": (
        Seen(HERE, SENT, heard_itself=True, has_privacy=True, system="denies"),
        Verdict.PERMISSION_OFF,
    ),
    "on but stuck": (Seen(HERE, REFUSED, has_privacy=True, system="serves"), Verdict.PERMISSION_STUCK),
    "firewall here": (Seen(HERE, SENT), Verdict.MULTICAST_BLOCKED),
    "no privacy in macOS 14": (Seen(HERE, REFUSED), Verdict.MULTICAST_BLOCKED),
    "access point isolates": (Seen(HERE, SENT, heard_itself=True, reached_directly=True), Verdict.MULTICAST_BLOCKED),
    "alone": (Seen(HERE, SENT, heard_itself=True, has_privacy=True, system="serves"), Verdict.NOBODY_ANSWERED),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_told_apart(name):
    seen, verdict = CASES[name]
    assert judge(seen) is verdict


def test_each_verdict_says_what_to_do():
    for verdict in Verdict:
        problem, what_to_do = advice(verdict)
        assert problem.endswith(".")
        assert what_to_do.endswith(".")


def test_only_macos_15_and_newer_ask_the_person():
    assert [each for each in ("", "14.7.1", "15.0", "26.1") if network_test.has_privacy(each)] == ["15.0", "26.1"]


def test_a_question_on_the_loopback_comes_back():
    assert network_test.ask(["127.0.0.1"], 0.2) == ((0,), True, 0)


def test_an_address_that_is_not_ours_cannot_send():
    (error,), heard_itself, _answers = network_test.ask(["192.0.2.77"], 0.0)
    assert error in {errno.EADDRNOTAVAIL, errno.ENODEV}
    assert not heard_itself


def test_a_known_machine_is_reached_or_not():
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = HostPort("127.0.0.1", server.getsockname()[1])
        assert network_test._reaches(place)
    assert not network_test._reaches(place)


BONJOUR = """
#include <stdint.h>
#include <unistd.h>
typedef void (*Reply)(void *, uint32_t, uint32_t, int32_t, const char *, const char *, const char *, void *);
static Reply reply;
static int ends[2];
int32_t DNSServiceBrowse(void **ref, uint32_t f, uint32_t i, const char *kind, const char *domain, Reply r, void *c) {
    if (AT_ONCE) return AT_ONCE;
    reply = r; *ref = &reply; pipe(ends);
    if (LATER) write(ends[1], "x", 1);
    return 0;
}
int DNSServiceRefSockFD(void *ref) { return ends[0]; }
int32_t DNSServiceProcessResult(void *ref) { reply(ref, 0, 0, LATER, "", "", "", 0); return 0; }
void DNSServiceRefDeallocate(void *ref) { close(ends[0]); close(ends[1]); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
@pytest.mark.parametrize(
    ("at_once", "later", "answer"),
    [(0, 0, "serves"), (0, -65570, "denies"), (-65570, 0, "denies"), (-65563, 0, "unknown")],
)
def test_the_answer_of_the_systems_bonjour(tmp_path, at_once, later, answer):
    """A stand-in for it, because no Mac is at hand."""
    source, library = tmp_path / "bonjour.c", tmp_path / "bonjour.so"
    source.write_text(BONJOUR)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", f"-DAT_ONCE={at_once}", f"-DLATER={later}", "-o", library, source], check=True
    )
    assert network_test.ask_system(str(library), limit_seconds=0.1) == answer
