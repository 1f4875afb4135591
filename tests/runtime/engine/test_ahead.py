"""Graphs that are built before their input is there: the same numbers, and no trace of a wrong guess."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mlx.core as mx
import msgspec
import numpy as np
import pytest

from runtime.engine import tensors
from runtime.engine.ahead import works_ahead
from runtime.engine.frames import CarriedArray, Drop, Open, Prefix, Sampling, Step
from runtime.engine.hop import HopError
from runtime.engine.stage import Stage
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

PROMPT = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


class Staged:
    """Stages of one model, and how often a step found its graph built."""

    def __init__(self, config: dict[str, Any], split: tuple[int, ...], kv_bits: int = 0) -> None:
        edges = [sum(split[:index]) for index in range(len(split) + 1)]
        self.stages = [Stage(build(config), first, end, kv_bits) for first, end in pairwise(edges)]
        for stage in self.stages:
            stage.warm_up()
        self.built = 0
        self._number = 0

    def open(self, sequence: int) -> None:
        for stage in self.stages:
            stage.open(Open(sequence, Sampling(report_logits=True)))

    def build_ahead(self) -> None:
        for stage in self.stages:
            stage.build_ahead()

    def step(self, tokens: tuple[int, ...], **positions: int) -> tuple[bytes, ...]:
        """The rows' logits. ``positions`` by sequence, as ``s0=4``; tokens row after row."""
        sequences = tuple(int(name[1:]) for name in positions)
        step = Step(self._number, sequences, tuple(positions.values()), tokens, sample=True)
        self._number += 1
        carried, data = tensors.to_payload({})
        logits: tuple[bytes, ...] = ()
        for stage in self.stages:
            its = msgspec.structs.replace(step, carried=carried)
            result = stage.run_built(its, bytes(data))
            if result is None:
                result = stage.run(its, tensors.from_payload(bytes(data), carried))
            else:
                self.built += 1
            carried, data = tensors.to_payload(result.carried)
            logits = result.logits
        return logits


@pytest.mark.parametrize("split", [(3, 4), (1, 5, 1)], ids=str)
@pytest.mark.parametrize(
    ("config", "kv_bits"),
    [*((config, 0) for config in CONFIGS.values()), ({**CONFIGS["qwen3"], "head_dim": 32}, 8)],
    ids=[*CONFIGS, "8 bits"],
)
def test_logits_are_the_same_bit_for_bit(config, kv_bits, split):
    usual, ahead = Staged(config, split, kv_bits), Staged(config, split, kv_bits)
    for stages in (usual, ahead):
        stages.open(0)
    assert usual.step(PROMPT, s0=0) == ahead.step(PROMPT, s0=0)
    for place in range(20):
        ahead.build_ahead()
        expected = usual.step((place,), s0=len(PROMPT) + place)
        assert ahead.step((place,), s0=len(PROMPT) + place) == expected
    assert usual.built == 0
    assert ahead.built == 19 * len(split), "from the second step on, each stage knows what comes"


@pytest.mark.parametrize("name", CONFIGS)
def test_a_wrong_guess_leaves_nothing(name):
    def logits(*, ahead: bool) -> list[tuple[bytes, ...]]:
        stages = Staged(CONFIGS[name], (3, 4))
        for sequence in (0, 1):
            stages.open(sequence)
        seen = [stages.step(PROMPT, s0=0), stages.step((1,), s0=11), stages.step((2,), s0=12)]
        for tokens, positions in [
            (PROMPT[:5], {"s1": 0}),  # another sequence's prompt
            ((9,), {"s1": 5}),
            ((3,), {"s0": 13}),
            ((4, 5, 6), {"s0": 14}),  # several tokens of the sequence that was guessed
            ((7,), {"s0": 17}),
            ((8,), {"s1": 6}),
        ]:
            if ahead:
                stages.build_ahead()
            seen.append(stages.step(tokens, **positions))
        return seen

    assert logits(ahead=True) == logits(ahead=False)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_row_that_went_on_alone_comes_back_up_to_date(name):
    stages, alone = Staged(CONFIGS[name], (3, 4)), Staged(CONFIGS[name], (3, 4))
    for sequence in (0, 1):
        for one in (stages, alone):
            one.open(sequence)
            one.step(PROMPT[: 4 + sequence], **{f"s{sequence}": 0})
    stages.step((1, 2), s0=4, s1=5)
    stages.step((3,), s0=5)
    together = stages.step((4, 5), s0=6, s1=6)
    first = [alone.step((token,), s0=4 + place) for place, token in enumerate((1, 3, 4))][-1]
    second = [alone.step((token,), s1=5 + place) for place, token in enumerate((2, 5))][-1]
    for row, expected in zip(together, (*first, *second), strict=True):
        assert np.allclose(np.frombuffer(row, np.float32), np.frombuffer(expected, np.float32), atol=1e-4)


def test_bytes_that_do_not_match_the_header_are_refused_all_the_same():
    stages = Staged(CONFIGS["llama, tied"], (3, 4))
    stages.open(0)
    stages.step(PROMPT, s0=0)
    stages.step((1,), s0=11)
    stages.build_ahead()
    stage = stages.stages[1]
    step = Step(9, (0,), (12,), (2,), sample=True, carried=(CarriedArray("hidden", "float32", (1, 1, 64)),))
    assert stage.run_built(step, bytes(64)) is None
    with pytest.raises(HopError, match="came with 64 bytes"):
        tensors.from_payload(bytes(64), step.carried)
    stages.stages[0].run(msgspec.structs.replace(step, carried=()), {})  # nothing was left of what was built


def test_groups_in_turn_are_guessed():
    usual, ahead = Staged(CONFIGS["qwen3"], (3, 4)), Staged(CONFIGS["qwen3"], (3, 4))
    for stages in (usual, ahead):
        for sequence in range(4):
            stages.open(sequence)
            stages.step(PROMPT[: 3 + sequence], **{f"s{sequence}": 0})
    for turn in range(6):
        for first in (0, 2):
            positions = {f"s{first}": 3 + first + turn, f"s{first + 1}": 4 + first + turn}
            ahead.build_ahead()
            assert ahead.step((turn, turn + 1), **positions) == usual.step((turn, turn + 1), **positions)
    assert ahead.built >= 2 * 9, "after one round the order is known"


def test_what_was_built_is_undone_before_a_copy_and_before_a_drop():
    def logits(*, ahead: bool) -> tuple[bytes, ...]:
        stages = Staged(CONFIGS["llama, tied"], (3, 4))
        stages.open(0)
        stages.step(PROMPT, s0=0)
        stages.step((1,), s0=11)
        for frame in (Open(1, Sampling(report_logits=True), Prefix(0, 9)), Drop((0,))):
            if ahead:
                stages.build_ahead()
            for stage in stages.stages:
                stage.open(frame) if isinstance(frame, Open) else stage.drop(frame)
        return stages.step((1, 2), s1=9)

    assert logits(ahead=True) == logits(ahead=False)


def test_a_model_that_looks_at_numbers_while_it_builds_is_found():
    stage = Stage(build(CONFIGS["llama, tied"]), 3, 7)
    layer: Any = stage._span.local[1].mlp
    kind = type(layer)

    class Looks(kind):  # type: ignore[misc, valid-type]
        def __call__(self, hidden: mx.array) -> mx.array:
            largest: Any = mx.abs(hidden).max().item()
            scale = 2.0 if largest < 100 else 1.0
            result: mx.array = super().__call__(hidden) * scale
            return result

    layer.__class__ = Looks
    assert not works_ahead(stage._span, stage._new_cache)
    layer.__class__ = kind
    assert works_ahead(stage._span, stage._new_cache)


@pytest.mark.parametrize("name", CONFIGS)
def test_requests_side_by_side_get_their_own_tokens(name):
    pipeline = Pipeline(lambda: build(CONFIGS[name]), (2, 4, 1))
    prompts = [PROMPT[:length] for length in (2, 5, 9, 11)]
    for request, prompt in enumerate(prompts):
        pipeline.submit(request, prompt, 12)
    pipeline.finish()  # every stage builds ahead between any two events
    model = build(CONFIGS[name])
    for request, prompt in enumerate(prompts):
        assert pipeline.tokens[request] == greedy(model, prompt, 12)
