"""The two runs that a check compares: the split over worker processes, and the whole model in a child process.

The whole model follows the split: it takes the prompt in the same chunks and then the split's tokens, so that both
compute the very same thing, whatever either of them would have chosen.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from resources import starting
from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import Done, Generated, Logits, Prefilled, Sampling, Submit
from runtime.engine.whole_request import WholeRequest
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.planning.values import Plan

LogitRows = np.ndarray[Any, np.dtype[np.float32]]
"""Shape (new tokens, vocabulary)."""

_STEP_SECONDS = 300.0
"""A real model may take its time for a chunk; a test of ours never does."""
_CHILD_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a run chose, and from what."""

    tokens: tuple[int, ...]
    logits: LogitRows
    chunks: tuple[tuple[int, ...], ...] = ()
    """The prompt as it went in."""
    rounded_logits: LogitRows | None = None
    """The same with every weight moved by about its rounding."""


async def run_split(plan: Plan, folder: Path, prompt: Sequence[int], token_count: int) -> Run:
    """Greedy tokens after ``prompt`` by the ranks of ``plan``, all on this machine.

    Raises :class:`PomonaError` when a rank fails.
    """
    tokens: list[int] = []
    rows: list[bytes] = []
    edges = [0]
    async with LocalRanks(plan, folder) as ranks:
        await ranks.send(Submit(1, tuple(prompt), token_count, (), Sampling(report_logits=True)))
        while True:
            try:
                async with asyncio.timeout(_STEP_SECONDS):
                    frame = await ranks.next_frame()
            except TimeoutError:
                raise PomonaError(f"The ranks made no progress for {_STEP_SECONDS:.0f} s.") from None
            match frame:
                case Prefilled(_, prompt_tokens, _):
                    edges.append(prompt_tokens)
                case Logits(_, values):
                    rows.append(values)
                case Generated(_, chosen):
                    tokens += chosen
                case Done():
                    break
                case _:
                    raise PomonaError(f"The driver sent a {type(frame).__name__}, which it never should.")
    # The prompt's last token goes in alone, in the step that chooses the first new one.
    edges = sorted({*edges, len(prompt) - 1, len(prompt)})
    chunks = tuple(tuple(prompt[begin:end]) for begin, end in pairwise(edges))
    return Run(tuple(tokens), np.stack([np.frombuffer(row, np.float32) for row in rows]), chunks)


async def run_whole(folder: Path, split: Run, *, rounded: bool) -> Run:
    """The same tokens through the whole model, by mlx-lm alone in a child process.

    Raises :class:`PomonaError` if it cannot be run.
    """
    request = WholeRequest(str(folder), split.chunks, split.tokens[:-1], rounded)
    with tempfile.TemporaryDirectory(prefix="pomona-check-") as scratch:
        target = str(Path(scratch, "result.npz"))
        await _run_engine("whole_model", _written(request, Path(scratch)), target)
        with np.load(target) as result:
            rounded_logits = result["rounded_logits"] if request.rounded else None
            return Run(tuple(result["tokens"].tolist()), result["logits"], request.chunks, rounded_logits)


def _written(request: WholeRequest, folder: Path) -> str:
    path = folder / "request.json"
    path.write_bytes(msgspec.json.encode(request))
    return str(path)


async def random_model(config: Path, folder: Path) -> None:
    """Write a model with random weights for a ``config.json``, in a child process.

    Raises :class:`PomonaError` with mlx-lm's reason if there is no such model.
    """
    await _run_engine("random_model", str(config), str(folder))


async def _run_engine(module: str, *arguments: str) -> None:
    """Run a module of the engine as a child process, because this one must not import mlx. Cancelling ends it."""
    process = await asyncio.create_subprocess_exec(
        *starting.engine(module, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_CHILD_SECONDS):
            _, said = await process.communicate()
    except TimeoutError as error:
        raise PomonaError(f"The whole model took more than {_CHILD_SECONDS / 60:.0f} minutes.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = said.decode(errors="replace").strip().splitlines()
        raise PomonaError(words[-1] if words else f"{module} ended with status {process.returncode}.")
