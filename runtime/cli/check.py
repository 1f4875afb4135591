"""``pomona check``: does a split of a model compute what the whole model computes?"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runtime.check.comparison import CheckResult, check_plan, versions
from runtime.check.records import keep
from runtime.check.runs import random_model
from runtime.errors import PomonaError
from runtime.models.config import parse_settings
from runtime.models.demo import demo_model_folder
from runtime.models.layout import read_layout
from runtime.models.pipeline_mode import unknown_model
from runtime.planning.plan import PlanNode, Refusal, make_plan

if TYPE_CHECKING:
    from runtime.planning.plan import Mode, Plan

EXIT_IDENTICAL, EXIT_DIFFERENT, EXIT_REFUSED = 0, 1, 2
_ENOUGH_BYTES = 1 << 50
"""Whether the ranks fit this machine's memory is for the person to know who checks."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """A check as asked for on the command line."""

    model: str
    """A model's folder, a ``config.json``, or ``demo``."""
    rank_count: int
    split: tuple[int, ...] | None
    mode: Mode
    as_json: bool


def run_check(options: CheckOptions) -> int:
    """Check, say what came of it, and return the exit status: 0 identical, 1 different, 2 refused."""
    try:
        with ExitStack() as stack:
            result = _check(options, stack)
    except PomonaError as error:
        result = CheckResult(options.model, options.split or (), options.mode, versions(), refusal=str(error))
    _say(result, as_json=options.as_json)
    if result.refusal:
        return EXIT_REFUSED
    return EXIT_IDENTICAL if result.identical else EXIT_DIFFERENT


def _check(options: CheckOptions, stack: ExitStack) -> CheckResult:
    given = Path(options.model)
    is_bare = given.is_file()
    if is_bare:
        # Named after the configuration, because a model's name is its folder's.
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pomona-check-")))
        folder = scratch / (given.parent.name if given.stem == "config" else given.stem)
        settings = parse_settings(given.read_bytes(), str(given))
        if reason := unknown_model(settings, folder.name):
            raise PomonaError(reason)
        random_model(given, folder)
    else:
        folder = demo_model_folder() if options.model == "demo" else given
    result = asyncio.run(check_plan(folder, _plan(folder, options)))
    if not is_bare:
        keep(folder, result)
    return result


def _plan(folder: Path, options: CheckOptions) -> Plan:
    count = len(options.split) if options.split else options.rank_count
    nodes = [PlanNode(f"rank{index}", f"rank {index}", _ENOUGH_BYTES) for index in range(count)]
    plan = make_plan(read_layout(folder), nodes, options.split, options.mode)
    if isinstance(plan, Refusal):
        raise PomonaError(plan.reason)
    return plan


def _say(result: CheckResult, *, as_json: bool) -> None:
    if as_json:
        said = msgspec.to_builtins(result)
        if not result.refusal:
            del said["refusal"]
        sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
        return
    if result.refusal:
        sys.stderr.write(f"pomona: {result.refusal}\n")
        return
    split = ",".join(map(str, result.split))
    tokens = f"{result.prefill_tokens} prompt tokens and {result.decode_tokens} more"
    if result.identical:
        how = "bit for bit" if result.max_abs_difference == 0 else f"logits within {result.max_abs_difference:.2g}"
        sys.stdout.write(f"{result.model} in {result.mode} mode over {split} is the whole model: {how}, {tokens}.\n")
    else:
        apart = "NaN" if result.max_abs_difference is None else f"{result.max_abs_difference:.3g}"
        sys.stdout.write(
            f"{result.model} in {result.mode} mode over {split} is NOT the whole model: logits differ by {apart} "
            f"({tokens}).\n"
        )
