"""``pomona plan``: the best split of a model over imagined nodes, or what a split by hand would cost."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runtime.cli.plan_report import PlannedStage, PlanReport, PossibleChange, PredictedSpeed, UnusedNode, report_lines
from runtime.errors import PomonaError
from runtime.models.config import read_settings
from runtime.models.demo import demo_model_folder
from runtime.models.layout import read_layout
from runtime.planning.advice import NoFit, size
from runtime.planning.cost import LinkSpeed, NodeSpeed
from runtime.planning.from_config import model_cost
from runtime.planning.optimum import best_split, given_split
from runtime.planning.plan import PlanNode, Refusal, make_plan
from runtime.planning.problem import CostedNode, SplitProblem, uniform_links
from runtime.planning.tensor import tensor_group

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout
    from runtime.planning.budget import StageBytes
    from runtime.planning.evaluation import Split
    from runtime.planning.plan import Mode, Plan
    from runtime.planning.problem import Goal

EXIT_FITS, EXIT_REFUSED = 0, 2

_CONTEXT_TOKENS = 8192
_MOST_CONTEXT_TOKENS = 100_000_000
_BYTES_PER_SECOND = 100e9
"""Of a node that does not say: what Apple's plain chips of the second and third generation promise."""
_FLOPS_PER_BYTE = 30.0
"""Apple's GPUs do about so much arithmetic for each byte that their memory delivers."""
_LAYER_OVERHEAD_SECONDS = 20e-6
_LINK = LinkSpeed(rtt_seconds=3e-4, bytes_per_second=1e9)
"""Between imagined nodes: about 10 gigabit Ethernet."""
_RESERVE_BYTES, _RESERVE_SHARE = 2**30, 20
"""Kept free: a gibibyte, or a twentieth of a budget that is small."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class ImaginedNode:
    """A node as written on the command line."""

    name: str
    budget_bytes: int
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A plan as asked for on the command line."""

    model: str
    """A model's folder, or ``demo``."""
    nodes: tuple[ImaginedNode, ...]
    goal: Goal
    split: tuple[int, ...] | None
    mode: Mode
    context_tokens: int | None
    """None: 8192, or the longest that the model was made for if that is less."""
    as_json: bool


def parse_node(text: str) -> ImaginedNode:
    """``NAME=BUDGET[@GB/s]``: ``Studio=96@400``, ``Air=500MB``. Without a unit, GB. Raises ValueError."""
    name, _, rest = text.rpartition("=")
    budget, at, speed = rest.partition("@")
    number = budget.strip().upper().removesuffix("B")
    unit = _UNITS.get(number[-1:])
    count = float(number[:-1] if unit else number) * (unit or _UNITS["G"])
    rate = float(speed.strip().upper().removesuffix("GB/S")) * 1e9 if at else _BYTES_PER_SECOND
    if not name.strip() or not 0 <= count < 2**53 or not 1e6 <= rate < 1e16:
        raise ValueError(text)
    return ImaginedNode(name.strip(), int(count), rate)


def run_plan(options: PlanOptions) -> int:
    """Plan, say it, and return the exit status: 0 it fits, 2 it does not. Raises :class:`PomonaError` for bad input."""
    if not options.nodes:
        raise PomonaError("There is no node to plan for: name one as in --node Studio=96@400 (name, GB, GB/s).")
    if (options.context_tokens or 0) > _MOST_CONTEXT_TOKENS:
        raise PomonaError(f"A context of {options.context_tokens} tokens is more than any model has.")
    folder = demo_model_folder() if options.model == "demo" else Path(options.model)
    layout = read_layout(folder)
    problem = SplitProblem(
        model_cost(layout, read_settings(folder)),
        tuple(_costed(node) for node in options.nodes),
        uniform_links(len(options.nodes), _LINK),
        options.context_tokens or min(_CONTEXT_TOKENS, layout.context_tokens),
    )
    report = _planned(options, layout, problem)
    if options.as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    elif report.refusal or not report.predicted:
        sys.stderr.write(f"pomona: {report.refusal}\n")
    else:
        sys.stdout.write("\n".join([*report_lines(report, report.predicted, layout.name), ""]))
    return EXIT_FITS if report.fits else EXIT_REFUSED


def _costed(node: ImaginedNode) -> CostedNode:
    speed = NodeSpeed(node.bytes_per_second, node.bytes_per_second * _FLOPS_PER_BYTE, _LAYER_OVERHEAD_SECONDS)
    return CostedNode(node.name, node.budget_bytes, min(_RESERVE_BYTES, node.budget_bytes // _RESERVE_SHARE), speed)


def _planned(options: PlanOptions, layout: ModelLayout, problem: SplitProblem) -> PlanReport:
    # Names, numbers and heads are judged by the launch's own function; here only what fits and how fast it is.
    roomy = [PlanNode(node.name, node.name, 1 << 62) for node in problem.nodes]
    refused: Plan | Refusal | None = _twice_named(problem)
    if not refused and (options.mode == "tensor" or options.split):
        refused = make_plan(layout, roomy, options.split, options.mode)
    if isinstance(refused, Refusal):
        return _report(options, problem, refusal=refused.reason)
    if options.mode == "tensor":
        return _tensor_report(options, layout, problem)
    if options.split:
        split, refusal = given_split(problem, options.split)
        parts = zip(problem.nodes, options.split, strict=True)
        unused = [
            UnusedNode(node.name, f"{node.name} not used: the split gives it 0") for node, part in parts if not part
        ]
        return _split_report(options, split, unused, refusal)
    found = best_split(problem, options.goal)
    if isinstance(found, NoFit):
        return _report(options, problem, refusal=found.reason, changes=_changes(found))
    return _split_report(options, found.split, [UnusedNode(node.name, node.reason) for node in found.unused], None)


def _twice_named(problem: SplitProblem) -> Refusal | None:
    names = [node.name for node in problem.nodes]
    twice = next((name for name in names if names.count(name) > 1), None)
    return Refusal(f"{twice} is named twice: give each node a name of its own.") if twice else None


def _split_report(options: PlanOptions, split: Split, unused: list[UnusedNode], refusal: NoFit | None) -> PlanReport:
    stages = tuple(
        _stage(split.node_of(stage).name, (stage.first_layer, stage.last_layer), stage.memory, stage.decode_seconds)
        for stage in split.stages
    )
    predicted = PredictedSpeed(
        split.predicted.chat_tokens_per_second,
        split.predicted.requests_tokens_per_second,
        split.ttft_seconds(1024),
        split.ttft_seconds(16384),
    )
    return PlanReport(
        refusal is None,
        options.mode,
        options.goal,
        split.problem.context_tokens,
        stages,
        tuple(unused),
        predicted,
        refusal.reason if refusal else None,
        _changes(refusal) if refusal else (),
    )


def _tensor_report(options: PlanOptions, layout: ModelLayout, problem: SplitProblem) -> PlanReport:
    group = tensor_group(problem, layout)
    run = (0, len(layout.layer_bytes) - 1)
    parts = list(zip(problem.nodes, group.memory, group.node_seconds, strict=True))
    worst, memory, _ = min(parts, key=lambda part: part[1].room_bytes)
    refusal = None
    if memory.room_bytes < 0:
        refusal = (
            f"{worst.name} lacks {size(-memory.room_bytes)} for its share of every layer; "
            "choose pipeline mode, a shorter context or another number of nodes."
        )
    rate = group.tokens_per_second
    return PlanReport(
        refusal is None,
        options.mode,
        options.goal,
        problem.context_tokens,
        tuple(_stage(node.name, run, held, seconds + group.reduce_seconds) for node, held, seconds in parts),
        predicted=PredictedSpeed(rate, rate, group.ttft_seconds(1024), group.ttft_seconds(16384)),
        refusal=refusal,
        warning=group.warning,
    )


def _report(
    options: PlanOptions, problem: SplitProblem, *, refusal: str, changes: tuple[PossibleChange, ...] = ()
) -> PlanReport:
    return PlanReport(False, options.mode, options.goal, problem.context_tokens, refusal=refusal, changes=changes)


def _stage(node: str, run: tuple[int, int], memory: StageBytes, decode_seconds: float) -> PlannedStage:
    return PlannedStage(
        node,
        *run,
        memory.weight_bytes,
        memory.kv_bytes,
        memory.reserve_bytes,
        memory.budget_bytes,
        decode_seconds,
    )


def _changes(refusal: NoFit) -> tuple[PossibleChange, ...]:
    return tuple(PossibleChange(change.kind, change.amount, change.words) for change in refusal.changes)
