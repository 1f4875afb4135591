"""``pomona check``: does a split of a model compute what the whole model computes?"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.check.comparison import check_plan
from runtime.check.records import keep
from runtime.check.result import CheckResult, sentence
from runtime.check.runs import random_model
from runtime.check.versions import versions
from runtime.errors import PomonaError
from runtime.models.config import parse_settings
from runtime.models.demo import demo_model_folder
from runtime.models.layout import read_layout
from runtime.models.pipeline_mode import pipeline_refusal, unknown_model
from runtime.models.tensor_mode.refusal import tensor_refusals
from runtime.planning.plan import PlanNode, Refusal, make_plan
from runtime.planning.refusals import tensor_reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Mode, Plan

EXIT_IDENTICAL, EXIT_DIFFERENT, EXIT_REFUSED = 0, 1, 2
_ENOUGH_BYTES = 1 << 50
"""The budget of each rank: all of them are on this machine, which has room for the whole model or is refused."""


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
        if reason := unknown_model(settings, folder.name) or _refusal(settings, folder.name, options):
            raise PomonaError(reason)
        asyncio.run(random_model(given, folder))
    else:
        folder = demo_model_folder() if options.model == "demo" else given
    layout = read_layout(folder)
    plan = _plan(layout, options)
    if reason := _too_large(layout):
        raise PomonaError(reason)
    result = asyncio.run(check_plan(folder, plan))
    if not is_bare:
        keep(folder, result)
    return result


def _refusal(settings: Mapping[str, Any], name: str, options: CheckOptions) -> str:
    """What the plan would be refused for, before random weights are made."""
    if options.mode == "tensor":
        return "" if options.split else tensor_reason(tensor_refusals(settings, name), options.rank_count)
    stage_count = sum(part > 0 for part in options.split) if options.split else options.rank_count
    return pipeline_refusal(settings, name) if stage_count > 1 else ""


def _plan(layout: ModelLayout, options: CheckOptions) -> Plan:
    count = len(options.split) if options.split else options.rank_count
    nodes = [PlanNode(f"rank{index}", f"rank {index}", _ENOUGH_BYTES) for index in range(count)]
    plan = make_plan(layout, nodes, options.split, options.mode)
    if isinstance(plan, Refusal):
        raise PomonaError(plan.reason)
    return plan


def _too_large(layout: ModelLayout) -> str:
    """Why this machine cannot run the whole model, which a split is compared with."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if layout.weight_bytes < memory_bytes:
        return ""
    return (
        f"{layout.name} takes {layout.weight_bytes / 2**30:.0f} GB and this machine has {memory_bytes / 2**30:.0f} GB, "
        "so the whole model cannot run here to compare with: check its config.json with fewer layers instead."
    )


def _say(result: CheckResult, *, as_json: bool) -> None:
    if as_json:
        said = msgspec.to_builtins(result)
        if not result.refusal:
            del said["refusal"]
        sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
        return
    words = sentence(result)
    if result.refusal:
        sys.stderr.write(f"pomona: {words}\n")
    else:
        sys.stdout.write(f"{words}\n")
