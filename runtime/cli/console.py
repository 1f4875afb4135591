"""A session in the terminal: finds the nodes, loads, streams answers, and says what was measured."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.cli.place import note, placed
from runtime.cli.progress import Progress
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    PlanRefused,
    Ready,
    Recovering,
    Rejected,
    Resplit,
    Text,
    UsedLink,
)
from runtime.errors import PomonaError
from runtime.planning.plan import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.cli.place import Place, PlaceOptions
    from runtime.cluster.messages import ServerMessage
    from runtime.engine.orders import HopKind
    from runtime.planning.plan import Plan

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


async def run_console(options: PlaceOptions, question: Question, *, hops: HopKind = "tls", as_json: bool) -> int:
    """Run a model where ``options`` says and talk with it; returns the exit status."""
    this_task = asyncio.current_task()
    assert this_task is not None  # a coroutine runs in a task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this_task.cancel)
    async with placed(options) as place:
        client = await SessionClient.start(
            place.plan(), place.folder, place.nodes, place.home, hops=hops, folder_on=place.folder_on
        )
        try:
            return await _converse(client, place, question, as_json=as_json)
        finally:
            await client.close()


async def _converse(client: SessionClient, place: Place, question: Question, *, as_json: bool) -> int:
    events = client.events()
    ready = await Progress().until_ready(events)
    if not isinstance(ready, Ready):
        return EXIT_FAILED
    turns: list[ChatMessage] = []
    while True:
        prompt = question.prompt or await _typed()
        if prompt is None:
            return 0
        if question.prompt is None and prompt.split()[0] == SPLIT_COMMAND:
            changed = await _resplit(client, events, place, prompt)
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
    client: SessionClient, events: AsyncIterator[ServerMessage], place: Place, line: str
) -> Ready | PlanRefused | None:
    """Go over to the split that a person typed. What is wrong with it is told and returned; None if all is over."""
    try:
        split = [int(part) for part in line.removeprefix(SPLIT_COMMAND).split(",")]
        plan = place.plan(split)
    except ValueError:
        return _refused(f"Give layers for each node, such as {SPLIT_COMMAND} 7,16,7.")
    except PomonaError as error:
        return _refused(str(error))
    await client.send(Resplit(plan))
    outcome = await Progress().until_ready(events)
    if isinstance(outcome, Ready):
        read_bytes = sum(rank.read_bytes for rank in outcome.ranks)
        note(f"{read_bytes / MIB:.1f} MB were loaded; the rest was there")
    return outcome


def _refused(reason: str) -> PlanRefused:
    note(f"pomona: {reason}")
    return PlanRefused(reason)


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
                note(f"\npomona: {reason} The answer goes on when the model is up again.")
            case Rejected(reason=reason) | Failed(reason):
                note(f"pomona: {reason}")
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
