"""The logs of a job on several nodes, for a person to read, and as a report for someone who can help."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discovery.address import HostPort
from resources.words import describe
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.job_logs import ANSWER_BYTES, LOGS_PATH, NodeLogs
from runtime.agent.trust_messages import decode
from runtime.errors import PomonaError
from runtime.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

_ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LogsOfNode:
    """What one node wrote."""

    node_id: str
    name: str
    logs: NodeLogs = NodeLogs()  # noqa: RUF009  it is frozen
    trouble: str = ""
    """Why its logs cannot be read; empty if they were."""


async def read_job_logs(home: Home, nodes: Sequence[KnownNode], job: str = "") -> tuple[LogsOfNode, ...]:
    """Of ``job``, or of the newest one on each node; all nodes are asked at once."""
    async with new_session(_ASK_SECONDS) as session:
        return tuple(await asyncio.gather(*(_of_node(session, home, node, job) for node in nodes)))


async def report_of(home: Home, nodes: Sequence[KnownNode], *, with_names: bool = False) -> str:
    """What the nodes are and what their newest jobs wrote, with names and addresses replaced.

    Raises :class:`PomonaError` without nodes.
    """
    if not nodes:
        raise PomonaError("No node answered, so there is nothing to report; `pomona doctor` looks for trouble.")
    read = await read_job_logs(home, nodes)
    text = "".join(_section(node, one) for node, one in zip(nodes, read, strict=True))
    return text if with_names else Redaction(node.resources.name for node in nodes)(text)


async def _of_node(session: aiohttp.ClientSession, home: Home, node: KnownNode, job: str) -> LogsOfNode:
    has = node.resources
    path = f"{LOGS_PATH}?job={job}" if job else LOGS_PATH
    try:
        place, context = HostPort(node.host, node.port), home.context_for(node.certificate)
        answer = await call(session, "GET", place, path, context, limit_bytes=ANSWER_BYTES)
        return LogsOfNode(has.node_id, has.name, decode(answer, NodeLogs))
    except (NoAnswer, Refused, ValueError) as error:
        return LogsOfNode(has.node_id, has.name, trouble=str(error) or "it does not answer")


def _section(node: KnownNode, read: LogsOfNode) -> str:
    head = f"== {describe(node.resources)}; Pomona {node.resources.versions.pomona}\n"
    if read.trouble:
        return f"{head}its logs cannot be read: {read.trouble}\n"
    ranks = [f"-- {rank.name}\n{rank.text.rstrip()}\n" for rank in read.logs.ranks]
    return "".join([head, *(ranks or ["no job has run there\n"])])
