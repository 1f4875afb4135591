"""A plan's bytes are those that a rank holds once its context is full, for every model type.

MLX's cache of buffers hands out some that are up to two pages (32 kB) larger than asked for. Beside a real layer's
cache that is nothing, and a plan's reserve is for it; beside these tiny ones it would be a tenth, so here it is off.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import mlx.core as mx
import msgspec
import pytest

from runtime.engine import tensors
from runtime.engine.cache_probe import probe
from runtime.engine.frames import CarriedArray, Open, Sampling, Step
from runtime.engine.load import build_stage
from runtime.engine.load import held_bytes as engine_held_bytes
from runtime.models.config import read_settings
from runtime.models.demo import demo_model_folder
from runtime.models.layout import read_layout
from runtime.planning.plan import Plan, PlanNode, make_plan
from tests.matrix import support
from tests.matrix.configs import CONFIGS, all_variants
from tests.matrix.staged import UNASKED_BYTES, saved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from runtime.models.layout import ModelLayout

CONTEXT_TOKENS = 512
CHUNKS = (256, 255, 1)
"""Of whole steps by which caches grow, as the driver's are; the last token alone, as in decoding."""
SHARE = 0.03
VARIANTS = [each for each in all_variants() if each[0] not in support.NEEDS_METAL and not support.refusal(each[2])]
DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
FEW = ("llama", "gemma3_text", "mamba2", "deepseek_v3", "afm7", "jamba")
"""One for each way in which a cache takes memory: growing, sliding, constant, compressed, copied, cut out."""


def planning_layout(folder: Path) -> ModelLayout:
    """As ``read_planning_layout``, without a process for each of some hundred models."""
    layout = read_layout(folder)
    assert layout.figures is not None
    caches = probe(read_settings(folder), DTYPES[layout.figures.dtype])
    figures = msgspec.structs.replace(layout.figures, caches=caches.layers, copies=caches.copies)
    return msgspec.structs.replace(layout, figures=figures)


def planned(layout: ModelLayout, split: Sequence[int]) -> list[int]:
    nodes = [PlanNode(str(index), str(index), 1 << 50) for index in range(len(split))]
    plan = make_plan(layout, nodes, split, context_tokens=CONTEXT_TOKENS)
    assert isinstance(plan, Plan), plan
    return [rank.weight_bytes + rank.kv_bytes for rank in plan.ranks]


@pytest.fixture(autouse=True)
def exact_buffers() -> Iterator[None]:
    """No buffer is larger than asked for."""
    limit = mx.set_cache_limit(0)
    yield
    mx.set_cache_limit(limit)


def held(folder: Path, split: Sequence[int]) -> list[int]:
    """What each stage holds after its context is full, beside what this process held before."""
    found = []
    carried: list[tuple[tuple[CarriedArray, ...], bytes]] = []
    for first, end in pairwise(accumulate(split, initial=0)):
        before = engine_held_bytes()
        stage = build_stage(folder, first, end, None)
        for _bytes in stage.load():
            pass
        stage.warm_up()
        stage.open(Open(0, Sampling()))
        position, handed = 0, []
        for number, width in enumerate(CHUNKS):
            tokens = tuple((7 * place + number) % 100 for place in range(width))
            step = Step(number, (0,), (position,), tokens, sample=width == 1)
            specs, data = carried[number] if carried else tensors.to_payload({})
            result = stage.run(step, tensors.from_payload(bytes(data), specs))
            specs, data = tensors.to_payload(result.carried)
            handed.append((specs, bytes(data)))
            position += width
            del result
        carried = handed
        found.append(engine_held_bytes() - before)
        del stage
    return found


def disagreeing(folder: Path, split: Sequence[int]) -> list[tuple[int, int]]:
    plans = planned(planning_layout(folder), split)
    pairs = zip(held(folder, split), plans, strict=True)
    return [(holds, plan) for holds, plan in pairs if abs(holds - plan) > SHARE * holds + UNASKED_BYTES]


@pytest.mark.parametrize("name", FEW)
def test_a_full_context_takes_what_was_planned(name, tmp_path):
    config = next(iter(CONFIGS[name].values()))
    assert disagreeing(saved(config, tmp_path / "model"), (3, 2, 2)) == []


@pytest.mark.timeout(400)
@pytest.mark.matrix
def test_a_full_context_of_the_demo_model_takes_what_was_planned():
    assert disagreeing(demo_model_folder(), (5, 18, 7)) == []


@pytest.mark.matrix
@pytest.mark.timeout(900)
@pytest.mark.parametrize("config", [pytest.param(each[2], id="-".join(each[:2])) for each in VARIANTS])
def test_a_full_context_of_every_type_takes_what_was_planned(config, tmp_path):
    assert disagreeing(saved(config, tmp_path / "model"), (3, 2, 2)) == []
