"""``pomona report``: the logs of the newest job on every node in reach, to be shown to someone who can help."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from runtime.agent.folder import data_folder, open_home
from runtime.cli.nodes import look_around
from runtime.cluster.job_logs import report_of

if TYPE_CHECKING:
    from discovery.home import Home


def run_report(seconds: float, *, only_here: bool, with_names: bool) -> int:
    """Print it. Raises :class:`PomonaError` if no node answers."""
    home = open_home(data_folder())
    sys.stdout.write(asyncio.run(report(home, seconds, only_here=only_here, with_names=with_names)))
    return 0


async def report(home: Home, seconds: float, *, only_here: bool, with_names: bool = False) -> str:
    """The report of all nodes that answer within ``seconds``. Raises :class:`PomonaError`."""
    nodes, _ = await look_around(home, seconds, only_here=only_here)
    return await report_of(home, nodes, with_names=with_names)
