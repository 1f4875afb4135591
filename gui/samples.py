"""Made-up clusters and messages of the real types, for pictures of the window and for its tests."""

from __future__ import annotations

from itertools import combinations
from math import sin
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gui.formatting import GIB, MIB
from resources.node import MemoryParts, NodeResources, Versions
from runtime.agent.models.choices import ModelChoice
from runtime.cluster.links import Link, LinkEnd, NodePair
from runtime.cluster.messages import (
    Finished,
    LoadProgress,
    MeasuredStage,
    RankHeld,
    Ready,
    RunMeasured,
    StageTimes,
    Statistics,
    Throughput,
)
from runtime.cluster.nodes import KnownNode, UnpairedNode
from runtime.models.cache_layout import LayerCache
from runtime.models.layer_figures import ModelFigures
from runtime.models.layout import ModelLayout
from runtime.models.tensor_mode.refusal import tensor_refusals
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.cluster.messages import LoadPhase

MAC_VERSIONS = Versions("0.1.0", "0.32.4", "0.32.2", "3.12.8", "macOS 26.1")

SMALL_MODEL = ModelLayout(
    name="SmolLM2-135M-Instruct",
    model_type="llama",
    layer_bytes=(int(2.9 * MIB),) * 30,
    embedding_bytes=int(28.1 * MIB),
    head_bytes=2304,
    tied_embedding=True,
    attention_heads=9,
    key_value_heads=3,
    context_tokens=8192,
    layer_divided_bytes=(int(2.89 * MIB),) * 30,
    head_divided_bytes=0,
    tensor_refusals=tensor_refusals(
        {
            "model_type": "llama",
            "hidden_size": 576,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "intermediate_size": 1536,
        },
        "SmolLM2-135M-Instruct",
    ),
    figures=ModelFigures((LayerCache("full", 768),) * 30, 1152, 0.5625, "4-bit"),
)
LARGE_MODEL = ModelLayout(
    name="DeepSeek-V3 4-bit",
    model_type="deepseek_v3",
    layer_bytes=(int(1.4 * GIB),) * 3 + (int(5.35 * GIB),) * 58,
    embedding_bytes=int(0.5 * GIB),
    head_bytes=int(0.5 * GIB),
    tied_embedding=False,
    attention_heads=128,
    key_value_heads=128,
    context_tokens=163840,
    layer_divided_bytes=(int(1.3 * GIB),) * 3 + (int(5.2 * GIB),) * 58,
    head_divided_bytes=0,
    tensor_refusals=tensor_refusals(
        {
            "model_type": "deepseek_v3",
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "first_k_dense_replace": 3,
        },
        "DeepSeek-V3 4-bit",
    ),
    layer_active_bytes=(int(1.4 * GIB),) * 3 + (int(0.4 * GIB),) * 58,
    figures=ModelFigures((LayerCache("latent", 1152),) * 61, 14336, 0.5625, "4-bit", 8 / 256),
)


def model_choices() -> tuple[ModelChoice, ...]:
    """Models on this machine, one of them in parts."""
    return (
        ModelChoice("DeepSeek-V3-4bit", Path("models/deepseek"), 61, 19, 103 * GIB, "4 bits"),
        ModelChoice("Qwen3-30B-A3B-Instruct-2507-MLX-4bit", Path("models/qwen"), 48, 48, 16 * GIB, "4 bits"),
        ModelChoice("SmolLM2-135M-Instruct", Path("models/smol"), 30, 30, 257 * MIB, "float16"),
    )


def unpaired(*names: str) -> tuple[UnpairedNode, ...]:
    """Machines that are there and not paired; the first shows its code."""
    return tuple(
        UnpairedNode(f"{index:064x}", name, f"192.0.2.{index + 10}", 47665, "", shows_code=index == 0)
        for index, name in enumerate(names)
    )


def of_layers(count: int, layer_bytes: int) -> ModelLayout:
    """A model of so many equal layers."""
    return msgspec.structs.replace(
        LARGE_MODEL,
        name=f"A model of {count} layers",
        layer_bytes=(layer_bytes,) * count,
        layer_divided_bytes=(layer_bytes,) * count,
        layer_active_bytes=(layer_bytes,) * count,
        figures=ModelFigures((LayerCache("full", 1152),) * count, 14336, 0.5625, "4-bit"),
    )


def node(name: str, chip: str, total_gib: float, available_gib: float, *, virtual: bool = False) -> KnownNode:
    """A node with a little memory used by others."""
    resources = NodeResources(
        node_id=name.lower().replace(" ", "-"),
        name=name,
        chip=chip,
        memory_total_bytes=round(total_gib * GIB),
        memory_available_bytes=round(available_gib * GIB),
        virtual=virtual,
        versions=MAC_VERSIONS,
    )
    return KnownNode("127.0.0.1", 52000, resources)


def macs() -> tuple[KnownNode, ...]:
    """Four Macs that hold a large model together."""
    return (
        _as_fast(node("Studio Ultra", "M3 Ultra", 192, 178), 819),
        _as_fast(node("Studio Max", "M4 Max", 128, 117), 546),
        _as_fast(node("MacBook Pro", "M4 Pro", 48, 36), 273),
        _as_fast(node("Mac mini", "M4", 32, 25), 120),
    )


def capped_macs() -> tuple[KnownNode, ...]:
    """The same, with all that they say of themselves: a MacBook keeps half of its memory for its person."""
    return tuple(_telling(known, cap_share=0.5 if known.resources.chip == "M4 Pro" else 0.9) for known in macs())


def _telling(known: KnownNode, cap_share: float) -> KnownNode:
    has = known.resources
    total, others = has.memory_total_bytes, has.memory_total_bytes - has.memory_available_bytes
    cap = round(total * cap_share)
    resources = msgspec.structs.replace(
        has,
        memory_available_bytes=min(has.memory_available_bytes, cap),
        memory=MemoryParts(others, 0, 0, 0, total - others),
        memory_cap_bytes=cap,
        gpu_memory_limit_bytes=round(total * 0.85),
        gpu_cores=40,
        gpu_load=0.03,
        system_power_watts=24.0,
        gpu_temperature_celsius=41.0,
        disk_free_bytes=412 * GIB,
    )
    return msgspec.structs.replace(known, resources=resources)


def virtual_nodes(chip: str = "Apple M4 Pro") -> tuple[KnownNode, ...]:
    """The three virtual nodes of the demo."""
    return tuple(
        node(f"Virtual {name}", chip, gib, gib, virtual=True) for name, gib in zip("ABC", (1, 2, 1), strict=True)
    )


def unequal_nodes() -> tuple[KnownNode, ...]:
    """A quick Mac with little memory free, a quick one, and a slow one."""
    return tuple(
        _as_fast(node(name, chip, 16, gib), rate)
        for name, chip, gib, rate in (
            ("MacBook Air", "M1", 2.0, 68),
            ("MacBook Pro", "M4 Max", 0.2, 546),
            ("Studio", "M2 Ultra", 6.0, 800),
        )
    )


def _as_fast(known: KnownNode, gb_per_second: int) -> KnownNode:
    resources = msgspec.structs.replace(
        known.resources,
        memory_bandwidth_bytes_per_second=gb_per_second * 10**9,
        memory_bandwidth_source="table",
    )
    return msgspec.structs.replace(known, resources=resources)


def like_nodes() -> tuple[tuple[KnownNode, ...], tuple[NodePair, ...]]:
    """Two Macs that are alike and a slow one, with Thunderbolt between all of them."""
    nodes = tuple(
        _as_fast(node(name, chip, 64, gib), rate)
        for name, chip, gib, rate in (
            ("Studio", "M2 Max", 50.0, 400),
            ("MacBook Pro", "M2 Max", 48.0, 400),
            ("Mac mini", "M2", 12.0, 100),
        )
    )
    pairs = []
    for one, other in combinations(sorted(known.resources.node_id for known in nodes), 2):
        ends = (LinkEnd(one, "en1", "169.254.1.1"), LinkEnd(other, "en1", "169.254.1.2"))
        pairs.append(NodePair((one, other), ((), ()), (Link("Thunderbolt", ends, 6e-5, 5e9),)))
    return nodes, tuple(pairs)


def many_nodes(count: int) -> tuple[KnownNode, ...]:
    """More nodes than most desks hold, some with long names."""
    names = ("MacBook Pro of somebody with a very long name", "Studio", "Mac mini in the cupboard", "Air", "iMac")
    chips = ("Apple M3 Ultra with an 80-core GPU", "M4 Max", "M4", "M2", "M1 Pro")
    return tuple(
        node(f"{names[index % 5]} {index + 1}", chips[index % 5], 64 + 16 * (index % 3), 50 + 9 * (index % 4))
        for index in range(count)
    )


def plan_over(layout: ModelLayout, nodes: Sequence[NodeResources], counts: tuple[int, ...]) -> Plan:
    """A plan that fits."""
    made = make_plan(layout, plan_nodes(layout, nodes), counts)
    assert isinstance(made, Plan)
    return made


def loading(plan: Plan, shares: Sequence[tuple[LoadPhase, float]]) -> Iterator[LoadProgress]:
    """One progress message per rank, with its phase and the part of its bytes that is loaded."""
    for index, (rank, (phase, share)) in enumerate(zip(plan.ranks, shares, strict=True)):
        loaded = round(rank.weight_bytes * share)
        yield LoadProgress(index, rank.node_id, rank.node_name, phase, loaded, rank.weight_bytes)


def ready(plan: Plan) -> Ready:
    """Every rank holds a little more than was planned."""
    held = tuple(
        RankHeld(
            index,
            rank.node_id,
            rank.node_name,
            stage.first_layer,
            stage.last_layer,
            rank.weight_bytes,
            round(rank.weight_bytes * 1.01),
        )
        for index, (stage, rank) in enumerate((stage, rank) for stage in plan.stages for rank in stage.ranks)
    )
    return Ready(plan, held)


def run_measured(plan: Plan, then: Plan | None = None, errors: Sequence[float] = (0.04, -0.18, 0.07)) -> RunMeasured:
    """Stages that took somewhat more or less than predicted; ``then`` is the split that follows."""
    stages = tuple(
        MeasuredStage(
            tuple(rank.node_name for rank in stage.ranks),
            stage.first_layer,
            stage.last_layer,
            stage.decode_seconds,
            stage.decode_seconds * (1 + error),
        )
        for stage, error in zip(plan.stages, errors, strict=False)
    )
    now = near(plan)
    if then is None:
        words = f"Another split gains nothing: this one reaches {now:.1f} tok/s by what was measured."
        return RunMeasured(stages, words)
    layers = ", ".join(f"{stage.layer_count} layers on {stage.ranks[0].node_name}" for stage in then.stages)
    words = f"By what was measured, {layers} would give {1.23 * now:.1f} tok/s instead of {now:.1f}: 23% more."
    return RunMeasured(stages, words, then, now, 1.23 * now)


def throughput(seconds: float, mean: float = 31.0) -> Iterator[Throughput]:
    """Ten samples a second of an answer that is not quite even."""
    for index in range(round(seconds * 10)):
        time = index / 10
        ramp = min(time / 1.0, 1.0)
        rate = ramp * mean * (1 + 0.07 * sin(time * 1.1) + 0.03 * sin(time * 7.3))
        yield Throughput(time, rate, 0.0, 1)


def counters(plan: Plan, seconds: float, mean: float = 31.0) -> Iterator[Statistics]:
    """Counters of an answer, ten times a second: each stage computes for its layers and waits for the others."""
    token = 1 / mean
    for index in range(round(seconds * 10)):
        steps = round(index / 10 * mean)
        stages = []
        for rank, stage in enumerate(plan.stages):
            busy = token * 0.9 * stage.layer_count / plan.layer_count
            stages.append(
                StageTimes(
                    rank,
                    stage.ranks[0].node_id,
                    steps,
                    steps,
                    steps * busy,
                    steps * (token - busy - 0.0008),
                    steps * 0.0008,
                    steps * 2304,
                    min(steps * 23040, stage.ranks[0].kv_bytes),
                    1,
                )
            )
        yield Statistics(index / 10, tuple(stages))


def finished(request_id: str, tokens: int = 57, tokens_per_second: float = 31.2) -> Finished:
    """The end of an answer."""
    return Finished(request_id, "stop", 42, tokens, 0.41, tokens_per_second)


def near(plan: Plan) -> float:
    """Tokens per second of a session that runs about as it was predicted."""
    return 0.94 * plan.predicted.chat_tokens_per_second if plan.predicted is not None else 31.0
