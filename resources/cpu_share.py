"""A share of this machine's CPU for some processes, so that virtual nodes can be unequal. Linux, and root, alone.

Cgroups bound the time that their processes may run in each period (the kernel's ``sched-bwc.rst``). Periods are short,
so that a process that works for milliseconds at a time is slow as a slower machine is, instead of quick at first and
then stopped. The cgroup goes with :meth:`CpuShare.close`; it has to be empty then.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

_VERSION_1, _VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_QUOTA_MICROSECONDS = 1000
"""The least that the kernel takes, so that periods are as short as can be."""
_PERIOD_LIMIT_MICROSECONDS = 1_000_000


class CpuShare:
    """A cgroup whose processes together have ``share`` of one core. Raises OSError if there can be none."""

    def __init__(self, name: str, share: float) -> None:
        if reason := refusal(share):
            raise OSError(reason)
        self._version_1 = (_VERSION_1 / "cpu.cfs_quota_us").exists()
        self._folder = (_VERSION_1 if self._version_1 else _VERSION_2) / f"pomona-{name}"
        self._folder.mkdir()
        period = round(_QUOTA_MICROSECONDS / share)
        limits = (
            {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": _QUOTA_MICROSECONDS, "cpu.shares": 262144}
            if self._version_1
            else {"cpu.max": f"{_QUOTA_MICROSECONDS} {period}", "cpu.weight": 10000}
        )
        for file, limit in limits.items():  # the largest weight there is: what others can take away is no share
            (self._folder / file).write_text(str(limit))

    def take(self, pid: int) -> None:
        """Put a process with all its threads here; what it starts later comes here too."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Let this process go, if it is here, and remove the cgroup."""
        here = (self._folder / "cgroup.procs").read_text().split()
        if str(os.getpid()) in here:
            (self._folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        with contextlib.suppress(FileNotFoundError):
            self._folder.rmdir()


def refusal(share: float) -> str | None:
    """Why there can be no CPU share here, or None."""
    least = _QUOTA_MICROSECONDS / _PERIOD_LIMIT_MICROSECONDS
    if not least <= share <= 1:
        return f"a CPU share lies between {least} and 1"
    if sys.platform != "linux":
        return "CPU shares need Linux"
    if os.geteuid() != 0:
        return "CPU shares need root"
    if not (_VERSION_1 / "cpu.cfs_quota_us").exists():
        controllers = _VERSION_2 / "cgroup.subtree_control"
        if not controllers.exists() or "cpu" not in controllers.read_text().split():
            return "this machine has no cgroups with a cpu controller"
    return None
