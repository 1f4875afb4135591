"""A model in stages computes what the whole model computes, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache

from runtime.engine import tensors
from runtime.engine.frames import CarriedArray, Drop, Open, Sampling, Step
from runtime.engine.hop import HopError
from runtime.engine.sampling import Choice, Sampler
from runtime.engine.stage import Stage
from tests.runtime.engine.models import CONFIGS, build

if TYPE_CHECKING:
    from collections.abc import Sequence

SPLITS = [(3, 4), (1, 6), (6, 1), (2, 4, 1), (1, 1, 1, 4)]
PROMPT = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
CHUNKS = (PROMPT[:4], PROMPT[4:10], PROMPT[10:], (41,), (43,), (47,))


def reference(config: dict[str, Any]) -> list[mx.array]:
    """The last position's logits after each chunk, by the whole model."""
    model = build(config)
    cache = make_prompt_cache(model)
    logits = [model(mx.array([chunk]), cache=cache)[:, -1, :] for chunk in CHUNKS]
    mx.eval(logits)
    return logits


class LastLogits(Sampler):
    """In a sampler's place: keeps the logits, chooses token 0."""

    def __init__(self) -> None:
        super().__init__(Sampling())
        self.seen: list[mx.array] = []

    @property
    def is_plain(self) -> bool:
        return False

    def __call__(self, logits: mx.array, tokens: Sequence[int], allowed: bytes = b"") -> Choice:
        self.seen.append(logits)
        return Choice(mx.zeros((1,), mx.uint32))


def staged(config: dict[str, Any], split: tuple[int, ...]) -> list[mx.array]:
    """The same by stages, each built from scratch, hidden states passed on as bytes."""
    edges = [sum(split[:index]) for index in range(len(split) + 1)]
    stages = [Stage(build(config), first, end) for first, end in pairwise(edges)]
    for stage in stages:
        list(stage.load())
        stage.warm_up()
        stage.open(Open(0, Sampling()))
    logits = stages[-1]._sequences[0].sampler = LastLogits()
    position = 0
    for chunk in CHUNKS:
        step = Step(0, (0,), (position,), chunk, sample=True)
        carried, data = tensors.to_payload({})
        for stage in stages:
            result = stage.run(step, tensors.from_payload(bytes(data), carried))
            carried, data = tensors.to_payload(result.carried)
        position += len(chunk)
    return logits.seen


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_logits_are_those_of_the_whole_model(name, split):
    for whole, in_stages in zip(reference(CONFIGS[name]), staged(CONFIGS[name], split), strict=True):
        assert mx.array_equal(whole, in_stages)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_a_hidden_state_survives_the_wire_bit_for_bit(dtype):
    hidden = mx.random.normal((1, 3, 8)).astype(dtype)
    carried, data = tensors.to_payload({"hidden": mx.contiguous(hidden), "flags": mx.array([True, False, True])})
    back = tensors.from_payload(bytes(data), carried)
    assert back["hidden"].dtype == dtype
    assert mx.array_equal(back["hidden"], hidden)
    assert back["flags"].tolist() == [True, False, True]


def test_bytes_that_do_not_match_the_header_are_refused():
    with pytest.raises(HopError, match="came with 10 bytes"):
        tensors.from_payload(bytes(10), [CarriedArray("hidden", "float32", (1, 1, 8))])


def test_a_step_that_does_not_fit_the_cache_is_refused():
    stage = Stage(build(CONFIGS["llama, tied"]), 0, 3)
    stage.open(Open(0, Sampling()))
    stage.run(Step(0, (0,), (0,), (1, 2, 3), sample=False), {})
    with pytest.raises(HopError, match="at position 7, but the cache holds 3 tokens"):
        stage.run(Step(1, (0,), (7,), (1,), sample=False), {})
    with pytest.raises(HopError, match="not open"):
        stage.run(Step(2, (5,), (0,), (1,), sample=False), {})
    stage.drop(Drop((0,)))
    assert stage.kv_bytes == 0


def test_a_worker_imports_no_tokenizers_and_no_transformers():
    code = (
        "import sys; from runtime.engine.without_text import import_mlx_lm; import_mlx_lm();"
        "import runtime.engine.load, runtime.engine.driver, mlx_lm.models.llama;"
        "print([name for name in ('transformers', 'tokenizers', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
