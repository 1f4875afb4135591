"""A session in the terminal: finds the nodes, loads, streams answers, and says what was measured."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.cli.console_report import MIB, node_lines, report_of, summary, times_words
from runtime.cli.place import note, placed
from runtime.cli.progress import Progress
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import (
    Chat,
    ChatMessage,
    Ended,
    Ending,
    Failed,
    Finished,
    PlanRefused,
    Ready,
    Rebalance,
    Recovering,
    Rejected,
    Resplit,
    RunMeasured,
    Text,
)
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.cli.place import Place, PlaceOptions
    from runtime.cluster.messages import ServerMessage
    from runtime.engine.orders import HopKind
    from runtime.planning.values import Plan

EXIT_FAILED = 1
SPLIT_COMMAND = "/split"
"""Typed in a chat, before the layers of each node: the running model goes over to them."""
REBALANCE_COMMAND = "/rebalance"
"""Typed in a chat: the running model goes over to the split that follows from what was measured."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask and how. Without a ``prompt`` a person types, until end of input."""

    prompt: str | None
    max_tokens: int
    temperature: float
    seed: int | None


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
            status = await _converse(client, place, question, as_json=as_json)
            if status != EXIT_FAILED:
                _tell_memory(await client.stop())
            return status
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
        if question.prompt is None and (command := prompt.split()[0]) in {SPLIT_COMMAND, REBALANCE_COMMAND}:
            if command == SPLIT_COMMAND:
                changed = await _resplit(client, events, place, prompt)
            else:
                changed = await _rebalance(client, events)
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
        if question.prompt is None:
            _out(summary(answer.finished))
            continue
        measured = await _ask_measured(client, events)
        if as_json:
            report = report_of(ready, answer.text, answer.tokens, answer.finished, measured)
            _out(msgspec.json.encode(report).decode() + "\n")
        else:
            _out(node_lines(ready, measured) + summary(answer.finished))
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
    return await _go_over(client, events, plan)


async def _rebalance(client: SessionClient, events: AsyncIterator[ServerMessage]) -> Ready | PlanRefused | None:
    """Say what was measured and go over to the split that follows, if it gains something."""
    measured = await _ask_measured(client, events)
    if measured is None:
        return None
    for stage in measured.stages:
        names = " + ".join(stage.node_names)
        note(f"{names}: layers {stage.first_layer}-{stage.last_layer}, {times_words(stage)} for a token")
    note(measured.words)
    if measured.proposal is None:
        return PlanRefused(measured.words)
    return await _go_over(client, events, measured.proposal)


async def _ask_measured(client: SessionClient, events: AsyncIterator[ServerMessage]) -> RunMeasured | None:
    """What the stages took until now; None if the session is over, which is told."""
    await client.send(Rebalance())
    async for event in events:
        match event:
            case RunMeasured():
                return event
            case Failed(reason):
                note(f"pomona: {reason}")
            case _:
                pass
    return None


async def _go_over(
    client: SessionClient, events: AsyncIterator[ServerMessage], plan: Plan
) -> Ready | PlanRefused | None:
    await client.send(Resplit(plan))
    outcome = await Progress().until_ready(events)
    if isinstance(outcome, Ready):
        read_bytes = sum(rank.read_bytes for rank in outcome.ranks)
        note(f"{read_bytes / MIB:.1f} MB were loaded; the rest was there")
    return outcome


def _tell_memory(end: Ended | Failed) -> None:
    if isinstance(end, Ended) and end.memory:
        missing = [back for back in end.memory if back.memory.missing_bytes]
        for back in missing:
            note(f"pomona: {back}")
        if not missing:
            held_bytes = sum(back.memory.held_bytes for back in end.memory)
            note(f"The memory of all nodes came back: {held_bytes / MIB:.0f} MB")


def _refused(reason: str) -> PlanRefused:
    note(f"pomona: {reason}")
    return PlanRefused(reason)


async def _answer(events: AsyncIterator[ServerMessage], *, echo: bool) -> _Answer | None:
    text: list[str] = []
    tokens: list[int] = []
    told = False
    async for event in events:
        match event:
            case Text():
                text.append(event.text)
                tokens += event.token_ids
                if echo:
                    _out(event.text)
            case Finished():
                return _Answer("".join(text), tokens, event)
            case Ending(reason):
                note(f"\npomona: {reason}")
                told = True
            case Recovering(reason):
                note(f"\npomona: {reason} The answer goes on when the model is up again.")
            case Rejected(reason=reason):
                note(f"pomona: {reason}")
                return None
            case Failed(reason):
                if not told:
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


def _out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
