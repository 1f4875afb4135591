"""A session in the terminal: finds the nodes, loads, streams answers, and says what was measured."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.folder import open_home
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    LoadProgress,
    ModelFetch,
    PlanRefused,
    Ready,
    Recovering,
    Rejected,
    Resplit,
    Text,
    UsedLink,
)
from runtime.cluster.nodes import NodeWatcher
from runtime.errors import PomonaError
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Mode, Refusal, make_plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from runtime.cluster.messages import ServerMessage
    from runtime.cluster.nodes import KnownNode
    from runtime.engine.orders import HopKind
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Plan

_FIND_SECONDS = 20.0
MIB = 1 << 20
"""Shown as MB, as Macs show memory."""
EXIT_FAILED = 1
SPLIT_COMMAND = "/split"
"""Typed in a chat, before the layers of each node: the running model goes over to them."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask and how. Without a ``prompt`` a person types, until end of input."""

    prompt: str | None
    max_tokens: int
    temperature: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class _Room:
    """What a session runs, and what another split of it is planned from."""

    layout: ModelLayout
    nodes: Sequence[KnownNode]
    mode: Mode

    def plan(self, split: Sequence[int] | None) -> Plan:
        """Raises :class:`PomonaError` with the reason why there is none."""
        plan = make_plan(
            self.layout, plan_nodes(self.layout, (node.resources for node in self.nodes)), split, self.mode
        )
        if isinstance(plan, Refusal):
            raise PomonaError(plan.reason)
        return plan


class StageReport(msgspec.Struct, frozen=True):
    """One rank in the JSON report."""

    node: str
    first_layer: int
    last_layer: int
    planned_bytes: int
    held_bytes: int


class Report(msgspec.Struct, frozen=True):
    """What ``--json`` prints. ``tokens`` are the ids of the answer, without the one that ended it."""

    model: str
    mode: Mode
    answer: str
    tokens: list[int]
    finish_reason: FinishReason
    ttft_seconds: float
    decode_tokens_per_second: float
    stages: list[StageReport]
    links: list[UsedLink]
    """From each stage to the next and from the last to the first; empty on one machine."""


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    tokens: list[int]
    finished: Finished


async def run_console(
    home: Path,
    folder: Path,
    node_ids: Sequence[str],
    split: Sequence[int] | None,
    mode: Mode,
    question: Question,
    *,
    hops: HopKind = "tls",
    as_json: bool,
) -> int:
    """Run the model over the nodes ``node_ids``, in this order, which trust ``home``; returns the exit status."""
    this_task = asyncio.current_task()
    assert this_task is not None  # a coroutine runs in a task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this_task.cancel)
    nodes = await _find_nodes(home, node_ids)
    room = _Room(read_planning_layout(folder), nodes, mode)
    client = await SessionClient.start(room.plan(split), folder, nodes, home, hops=hops)
    try:
        return await _converse(client, room, question, as_json=as_json)
    finally:
        await client.close()


async def _find_nodes(home: Path, node_ids: Sequence[str]) -> list[KnownNode]:
    found: dict[str, KnownNode] = {}
    complete = asyncio.Event()

    def on_change(nodes: tuple[KnownNode, ...]) -> None:
        found.clear()
        found.update((node.resources.node_id, node) for node in nodes)
        if found.keys() >= set(node_ids):
            complete.set()

    watcher = NodeWatcher(open_home(home), on_change)
    await watcher.start()
    try:
        async with asyncio.timeout(_FIND_SECONDS):
            await complete.wait()
    except TimeoutError:
        raise PomonaError(
            f"Only {len(found)} of {len(node_ids)} nodes were found within {_FIND_SECONDS:.0f} s; "
            "check that multicast works on this machine's loopback."
        ) from None
    finally:
        await watcher.close()
    return [found[node_id] for node_id in node_ids]


async def _converse(client: SessionClient, room: _Room, question: Question, *, as_json: bool) -> int:
    events = client.events()
    ready = await _load(events)
    if not isinstance(ready, Ready):
        return EXIT_FAILED
    turns: list[ChatMessage] = []
    while True:
        prompt = question.prompt or await _typed()
        if prompt is None:
            return 0
        if question.prompt is None and prompt.split()[0] == SPLIT_COMMAND:
            changed = await _resplit(client, events, room, prompt)
            if changed is None:
                return EXIT_FAILED
            ready = changed if isinstance(changed, Ready) else ready
            continue
        turns.append(ChatMessage("user", prompt))
        chat = Chat(uuid.uuid4().hex, tuple(turns), question.max_tokens, question.temperature, seed=question.seed)
        await client.send(chat)
        answer = await _answer(events, echo=not as_json)
        if answer is None:
            return EXIT_FAILED
        turns.append(ChatMessage("assistant", answer.text))
        if as_json:
            _out(msgspec.json.encode(_report(ready.plan, ready, answer)).decode() + "\n")
        else:
            _out(_summary(ready, answer.finished, with_nodes=question.prompt is not None))
        if question.prompt is not None:
            return 0


async def _resplit(
    client: SessionClient, events: AsyncIterator[ServerMessage], room: _Room, line: str
) -> Ready | PlanRefused | None:
    """Go over to the split that a person typed. What is wrong with it is told and returned; None if all is over."""
    try:
        split = [int(part) for part in line.removeprefix(SPLIT_COMMAND).split(",")]
        plan = room.plan(split)
    except ValueError:
        return _refused(f"Give layers for each node, such as {SPLIT_COMMAND} 7,16,7.")
    except PomonaError as error:
        return _refused(str(error))
    await client.send(Resplit(plan))
    outcome = await _load(events)
    if isinstance(outcome, Ready):
        read_bytes = sum(rank.read_bytes for rank in outcome.ranks)
        _note(f"{read_bytes / MIB:.1f} MB were loaded; the rest was there")
    return outcome


def _refused(reason: str) -> PlanRefused:
    _note(f"pomona: {reason}")
    return PlanRefused(reason)


async def _load(events: AsyncIterator[ServerMessage]) -> Ready | PlanRefused | None:
    """Tell each rank's phases until the model is ready; None if it fails, which is told too."""
    phases: dict[int, str] = {}
    async for event in events:
        match event:
            case LoadProgress(rank=rank, phase=phase) if phases.get(rank) != phase:
                phases[rank] = phase
                _note(f"{event.node_name}: {phase}")
            case ModelFetch(words=words) if words:
                _note(words)
            case Ready():
                return event
            case PlanRefused(reason):
                return _refused(reason)
            case Failed(reason):
                _note(f"pomona: {reason}")
            case _:
                pass
    return None


async def _answer(events: AsyncIterator[ServerMessage], *, echo: bool) -> _Answer | None:
    text: list[str] = []
    tokens: list[int] = []
    async for event in events:
        match event:
            case Text():
                text.append(event.text)
                tokens += event.token_ids
                if echo:
                    _out(event.text)
            case Finished():
                return _Answer("".join(text), tokens, event)
            case Recovering(reason):
                _note(f"\npomona: {reason} The answer goes on when the model is up again.")
            case Rejected(reason=reason) | Failed(reason):
                _note(f"pomona: {reason}")
                return None
            case _:
                pass
    return None


async def _typed() -> str | None:
    """The next line that a person types; None at the end."""
    while True:
        try:
            line = await asyncio.to_thread(input, "\n> ")
        except EOFError:
            return None
        if line.strip():
            return line


def _report(plan: Plan, ready: Ready, answer: _Answer) -> Report:
    return Report(
        plan.model,
        plan.mode,
        answer.text,
        answer.tokens,
        answer.finished.finish_reason,
        answer.finished.ttft_seconds,
        answer.finished.decode_tokens_per_second,
        [
            StageReport(rank.node_name, rank.first_layer, rank.last_layer, rank.planned_bytes, rank.held_bytes)
            for rank in ready.ranks
        ],
        list(ready.links),
    )


def _summary(ready: Ready, finished: Finished, *, with_nodes: bool) -> str:
    lines = ["\n"]
    if with_nodes:
        width = max(len(rank.node_name) for rank in ready.ranks)
        lines += [
            f"{rank.node_name:<{width}}  layers {rank.first_layer}-{rank.last_layer}  "
            f"holds {rank.held_bytes / MIB:.1f} MB (planned {rank.planned_bytes / MIB:.1f})\n"
            for rank in ready.ranks
        ]
        lines += [f"{link.from_node} to {link.to_node}: {link}\n" for link in ready.links]
    lines.append(
        f"first token after {finished.ttft_seconds:.2f} s, {finished.decode_tokens_per_second:.1f} tok/s, "
        f"{finished.completion_tokens} tokens\n"
    )
    return "".join(lines)


def _out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
