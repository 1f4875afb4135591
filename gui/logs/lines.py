"""The logs of several nodes as one: entries in order of time, and the ones that a person looks for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.agent.job_logs import JobSeen, RankLog
    from runtime.cluster.job_logs import LogsOfNode

_HEAD = re.compile(
    r"(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<text>.*)"
)
"""As ``runtime.engine.worker`` has :mod:`logging` begin an entry."""
_RANK = re.compile(r"(?P<job>[^-]*)-rank(?P<rank>\d+)")
_COLUMN_LIMIT = 24
"""One long name does not push the words of all others to the right."""


class Level(Enum):
    """How serious an entry is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_LEVELS = {"WARNING": Level.WARNING, "ERROR": Level.ERROR, "CRITICAL": Level.ERROR}


@dataclass(frozen=True, slots=True)
class Entry:
    """What was written at once; a traceback belongs to the line before it."""

    when: str
    """As it is written, which sorts by time; empty where nobody knows."""
    node_id: str
    where: str
    """The node, and the rank where a node has several."""
    level: Level
    text: str

    @property
    def shown(self) -> str:
        time = self.when[11:].replace(",", ".")
        return "  ".join(filter(None, (time, self.where, self.text.removeprefix("runtime."))))


def jobs_of(read: Sequence[LogsOfNode]) -> tuple[JobSeen, ...]:
    """Every job that some node has logs of, the newest first."""
    newest: dict[str, JobSeen] = {}
    for node in read:
        for seen in node.logs.jobs:
            known = newest.get(seen.job)
            if known is None or seen.written_seconds > known.written_seconds:
                newest[seen.job] = seen
    return tuple(sorted(newest.values(), key=lambda seen: seen.written_seconds, reverse=True))


def entries(read: Sequence[LogsOfNode], job: str) -> tuple[Entry, ...]:
    """What ``job`` wrote on all nodes, in order of time; first, what could not be read."""
    found: list[Entry] = []
    for node in read:
        if node.trouble:
            trouble = f"The logs of this node cannot be read: {node.trouble}"
            found.append(Entry("", node.node_id, node.name, Level.ERROR, trouble))
        ranks = [rank for rank in node.logs.ranks if _job_of(rank) == job]
        for rank in ranks:
            where = f"{node.name} rank {_number_of(rank)}" if len(ranks) > 1 else node.name
            found += _of_rank(node.node_id, where, rank.text)
    width = max((min(len(entry.where), _COLUMN_LIMIT) for entry in found if entry.when), default=0)
    aligned = (replace(entry, where=entry.where.ljust(width)) for entry in found)
    return tuple(sorted(aligned, key=lambda entry: entry.when))


def matching(all_entries: Sequence[Entry], words: str, node_id: str = "") -> tuple[Entry, ...]:
    """Those of a node, or of all, in which every one of ``words`` stands."""
    wanted = words.casefold().split()
    return tuple(
        entry
        for entry in all_entries
        if node_id in {"", entry.node_id} and all(word in entry.shown.casefold() for word in wanted)
    )


def _of_rank(node_id: str, where: str, text: str) -> Iterator[Entry]:
    when, level, held = "", Level.INFO, []
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head is None:
            held.append(line)
            continue
        if held:
            yield Entry(when, node_id, where, level, "\n".join(held))
        when, level, held = head["when"], _LEVELS.get(head["level"], Level.INFO), [head["text"]]
    if held:
        yield Entry(when, node_id, where, level, "\n".join(held))


def _job_of(rank: RankLog) -> str:
    named = _RANK.fullmatch(rank.name)
    return named["job"] if named else ""


def _number_of(rank: RankLog) -> str:
    named = _RANK.fullmatch(rank.name)
    return named["rank"] if named else rank.name
