"""``pomona report``: the logs of the newest job on every node in reach, to be shown to someone who can help."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.folder import data_folder, open_home
from runtime.agent.job_logs import LOGS_PATH, NodeLogs
from runtime.agent.trust_messages import decode
from runtime.cli.nodes import describe, look_around
from runtime.errors import PomonaError
from runtime.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

_ASK_SECONDS = 10.0


def run_report(seconds: float, *, only_here: bool, with_names: bool) -> int:
    """Print it. Raises :class:`PomonaError` if no node answers."""
    home = open_home(data_folder())
    sys.stdout.write(asyncio.run(report(home, seconds, only_here=only_here, with_names=with_names)))
    return 0


async def report(home: Home, seconds: float, *, only_here: bool, with_names: bool = False) -> str:
    """The report of all nodes that answer within ``seconds``, with their names and addresses replaced."""
    nodes, _ = await look_around(home, seconds, only_here=only_here)
    if not nodes:
        raise PomonaError("No node answered, so there is nothing to report; `pomona doctor` looks for trouble.")
    text = "".join([await _of_node(home, node) for node in nodes])
    return text if with_names else _without_names(text, nodes)


async def _of_node(home: Home, node: KnownNode) -> str:
    lines = [f"== {describe(node.resources)}; Pomona {node.resources.versions.pomona}\n"]
    async with new_session(_ASK_SECONDS) as session:
        try:
            context = home.context_for(node.certificate)
            logs = decode(await call(session, "GET", HostPort(node.host, node.port), LOGS_PATH, context), NodeLogs)
        except (NoAnswer, Refused, ValueError) as error:
            return f"{lines[0]}its logs cannot be read: {error}\n"
    lines += [f"-- {rank.name}\n{rank.text.rstrip()}\n" for rank in logs.ranks] or ["no job has run there\n"]
    return "".join(lines)


def _without_names(text: str, nodes: Sequence[KnownNode]) -> str:
    return Redaction(node.resources.name for node in nodes)(text)
