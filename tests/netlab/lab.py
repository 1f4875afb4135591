"""Hosts on cables, made of network namespaces: real kernels' networking, on one machine, with nothing of it touched.

A lab has one namespace for the switches (a bridge for each LAN) and one for each host. Names carry the id of the
process that made them, so what a killed run left behind is found and removed by the next one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
_PERSONAL = ("POMONA_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
"""Variables that would lead a host to this person's own folders."""

_PREFIX = "pomona-lab"
_NAMESPACE = re.compile(rf"{_PREFIX}-([0-9]+)-\w+")
_GROUPS_V1, _GROUPS_V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000
_END_SECONDS = 10


def missing() -> str | None:
    """Why there can be no lab here; None if there can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [command for command in ("ip", "tc", "unshare") if shutil.which(command) is None]
    if absent:
        return f"{', '.join(absent)} is not installed"
    allowed = subprocess.run(["unshare", "--net", "--uts", "true"], capture_output=True, check=False)
    return None if allowed.returncode == 0 else "this machine does not let root make network namespaces"


class Host:
    """One machine of the lab: its interfaces are ``eth0`` on the first LAN, ``eth1`` on the second, and so on."""

    def __init__(self, lab: Lab, number: int, name: str) -> None:
        self.name = name
        self.number = number
        self.namespace = f"{lab.prefix}-{name}"
        self.home = lab.folder / name
        self._lab = lab
        self._processes: list[subprocess.Popen[bytes]] = []
        self._group: Path | None = None

    def address(self, lan: int = 0) -> str:
        """Its first IPv4 address on a LAN."""
        return f"10.{77 + lan}.0.{self.number}"

    # Processes ------------------------------------------------------------------------------------------------------

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """A process on this host, with its own host name and home folder; it is killed when the lab ends."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *words]
        kept = {key: value for key, value in os.environ.items() if key not in _PERSONAL}
        environment = {**kept, "HOME": str(self.home), **options.pop("env", {})}
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *named],
            env=environment,
            cwd=ROOT,
            start_new_session=True,
            **options,
        )
        self._processes.append(process)
        if self._group is not None:
            (self._group / "cgroup.procs").write_text(str(process.pid))
        return process

    def python(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """The same for a module or program of this project."""
        return self.start(sys.executable, "-P", *words, **options)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """As a crash: at once and without a word."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def limit_cpu(self, percent: float) -> None:
        """All processes that start here from now on get this share of one core together."""
        quota = int(percent / 100 * _PERIOD_MICROSECONDS)
        second = "cpu" in _read(_GROUPS_V2 / "cgroup.controllers").split()
        self._group = (_GROUPS_V2 if second else _GROUPS_V1) / self.namespace
        self._group.mkdir()
        if second:
            (self._group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
        else:
            (self._group / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
            (self._group / "cpu.cfs_quota_us").write_text(str(quota))

    # Cables ---------------------------------------------------------------------------------------------------------

    def pull(self, lan: int = 0) -> None:
        """Pull the cable out: the interface stays, and loses its carrier."""
        self._lab.on_switch("link", "set", self._port(lan), "down")

    def push(self, lan: int = 0) -> None:
        """Put the cable back in."""
        self._lab.on_switch("link", "set", self._port(lan), "up")

    def plug(self, lan: int) -> None:
        """Add an interface with a cable to a LAN, and with an address if the lab has IPv4."""
        device = f"eth{lan}"
        self._lab.on_switch(
            "link", "add", self._port(lan), "type", "veth", "peer", "name", device, "netns", self.namespace
        )
        self._lab.on_switch("link", "set", self._port(lan), "master", f"lan{lan}")
        self._lab.on_switch("link", "set", self._port(lan), "up")
        # An IPv6 address would otherwise be usable only two seconds after it has come.
        self._shell(f"echo 0 > /proc/sys/net/ipv6/conf/{device}/accept_dad")
        if self._lab.ipv4:
            self._ip("address", "add", f"{self.address(lan)}/24", "broadcast", "+", "dev", device)
        self._ip("link", "set", device, "up")

    def unplug(self, lan: int) -> None:
        """Take the whole interface away, as a network adapter that is unplugged."""
        self._lab.on_switch("link", "delete", self._port(lan))

    def move(self, address: str, lan: int = 0) -> None:
        """Another IPv4 address instead of the present one, as DHCP gives it."""
        device = f"eth{lan}"
        self._ip("-4", "address", "flush", "dev", device)
        self._ip("address", "add", f"{address}/24", "broadcast", "+", "dev", device)

    def wall(self, other: Host, open_port: int) -> None:
        """From now on, silence for whatever ``other`` asks of any port but one: what a firewall does."""
        answers = ["to", other.address(), "ipproto", "tcp"]
        self._ip("rule", "add", "pref", "10", *answers, "sport", str(open_port), "lookup", "main")
        self._ip("rule", "add", "pref", "11", *answers, "sport", "1024-65534", "blackhole")

    def unwall(self) -> None:
        """No firewall any more."""
        for preference in ("10", "11"):
            self._ip("rule", "delete", "pref", preference)

    def limit_rate(self, megabits: int, lan: int = 0) -> None:
        """Slow a cable down in both directions."""
        limit = ["root", "tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms"]
        for namespace, device in ((self.namespace, f"eth{lan}"), (self._lab.switch, self._port(lan))):
            _run("tc", "-n", namespace, "qdisc", "replace", "dev", device, *limit)

    def sent_bytes(self, lan: int = 0) -> int:
        """What has left through this interface since it was plugged in."""
        return self._counter("tx_bytes", lan)

    def received_bytes(self, lan: int = 0) -> int:
        """What has come in by it."""
        return self._counter("rx_bytes", lan)

    def _counter(self, name: str, lan: int) -> int:
        counter = f"/sys/class/net/eth{lan}/statistics/{name}"
        return int(_run("ip", "netns", "exec", self.namespace, "cat", counter))

    def end(self) -> None:
        """Kill every process that was started here."""
        for process in self._processes:
            self.kill(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        if self._group is not None:
            self._group.rmdir()

    def _port(self, lan: int) -> str:
        return f"{self.number}-{lan}"

    def _ip(self, *words: str) -> None:
        _run("ip", "-n", self.namespace, *words)

    def _shell(self, line: str) -> None:
        _run("ip", "netns", "exec", self.namespace, "sh", "-c", line)


class Lab:
    """``with Lab("studio", "mini") as lab``: hosts by name, each with a cable to each of ``lans`` LANs."""

    def __init__(self, *names: str, lans: int = 1, ipv4: bool = True) -> None:
        self.prefix = f"{_PREFIX}-{os.getpid()}"
        self.switch = f"{self.prefix}-switch"
        self.ipv4 = ipv4
        self.folder = Path(tempfile.mkdtemp(prefix="pomona-lab-"))
        self.hosts = tuple(Host(self, number, name) for number, name in enumerate(names, start=1))
        self._lans = lans

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def __enter__(self) -> Self:
        try:
            remove_left_behind()
            _run("ip", "netns", "add", self.switch)
            for lan in range(self._lans):
                self.on_switch(
                    "link", "add", f"lan{lan}", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0"
                )
                self.on_switch("link", "set", f"lan{lan}", "up")
            for host in self.hosts:
                host.home.mkdir()
                _run("ip", "netns", "add", host.namespace)
                _run("ip", "-n", host.namespace, "link", "set", "lo", "up")
                for lan in range(self._lans):
                    host.plug(lan)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that runs here and take the network down; also what only half came up."""
        for host in self.hosts:
            host.end()
        for namespace in (*(host.namespace for host in self.hosts), self.switch):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
        shutil.rmtree(self.folder)

    def on_switch(self, *words: str) -> None:
        """``ip`` in the namespace of the switches."""
        _run("ip", "-n", self.switch, *words)


def remove_left_behind() -> None:
    """Take down labs whose process was killed."""
    for line in _run("ip", "netns", "list").splitlines():
        found = _NAMESPACE.match(line)
        if found is not None and not Path(f"/proc/{found[1]}").exists():
            _run("ip", "netns", "delete", line.split()[0])


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_END_SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
