"""Layers of other stages do nothing, and what they need crosses the boundary."""

from __future__ import annotations

import mlx.core as mx
import pytest

from runtime.engine import tensors
from runtime.engine.absent import Span
from runtime.engine.frames import Open, Sampling, Step
from runtime.engine.handover import HIDDEN
from runtime.engine.hop import HopError
from runtime.engine.random_model import random_model
from runtime.engine.stage import Stage
from runtime.errors import PomonaError
from tests.matrix.configs import CONFIGS


def crossing(model_type: str, variant: str, cut: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what a stage up to ``cut`` hands on for one token; also asked of the stage after it."""
    before = Stage(random_model(CONFIGS[model_type][variant]), 0, cut)
    before.open(Open(0, Sampling()))
    carried = before.run(Step(0, (0,), (0,), (7,), sample=True), {}).carried
    after = Span(random_model(CONFIGS[model_type][variant]), cut, 7)
    assert {name: array.shape for name, array in after.blank().items()} == {
        name: array.shape for name, array in carried.items()
    }
    assert sum(array.nbytes for array in carried.values()) <= after.received_bytes_per_token
    return {name: tuple(array.shape) for name, array in carried.items()}


def test_most_models_hand_on_their_hidden_state_alone():
    for model_type, variant in (("llama", "tied"), ("qwen3_next", "full every fourth"), ("deepseek_v32", "experts")):
        assert crossing(model_type, variant, 3) == {HIDDEN: (1, 1, 64)}


def test_others_hand_on_what_later_layers_need_and_no_more():
    assert crossing("rwkv7", "default", 3).keys() == {HIDDEN, "first_values"}
    assert crossing("talkie", "default", 3).keys() == {HIDDEN, "embedding"}
    assert crossing("hunyuan", "shared keys", 3).keys() == {HIDDEN, "keys", "values"}
    assert crossing("hunyuan", "shared keys", 4).keys() == {HIDDEN}  # a new group begins
    assert crossing("kimi_k3", "residual blocks", 3)["blocks"] == (2, 1, 1, 64)
    assert crossing("gemma3n", "own keys", 5) == {
        HIDDEN: (3, 1, 1, 64),
        "layer_input.5": (1, 1, 16),
        "layer_input.6": (1, 1, 16),
    }


def test_keys_cross_only_where_a_later_layer_works_on_them():
    keys = {"keys.2", "values.2", "keys.3", "values.3"}  # the last layers with keys of their own: full and sliding
    assert keys <= crossing("gemma4_text", "shared keys", 4).keys()
    assert not keys & crossing("gemma4_text", "shared keys", 2).keys()
    assert crossing("gemma4_text", "own keys", 4) == {HIDDEN: (1, 1, 64)}


@pytest.mark.parametrize(("model_type", "variant"), [("iquestloopcoder", "default"), ("nanbeige", "looped")])
def test_a_model_that_runs_its_layers_twice_cannot_be_a_stage_but_can_be_whole(model_type, variant):
    with pytest.raises(PomonaError, match="does not run its layers one after the other"):
        Span(random_model(CONFIGS[model_type][variant]), 0, 3)
    Span(random_model(CONFIGS[model_type][variant]), 0, 7)


def test_an_absent_layer_keeps_its_type_and_attributes():
    model = random_model(CONFIGS["olmo_hybrid"]["tied"])
    kinds = [type(layer) for layer in model.layers]
    Span(model, 2, 4)
    assert all(isinstance(layer, kind) for layer, kind in zip(model.layers, kinds, strict=True))
    hidden = mx.ones((1, 1, 64))
    assert model.layers[0](hidden, mask=None, cache=None) is hidden


def test_a_step_that_lacks_something_is_refused():
    stage = Stage(random_model(CONFIGS["rwkv7"]["default"]), 3, 7)
    stage.open(Open(0, Sampling()))
    complete = {HIDDEN: mx.zeros((1, 2, 64)), "first_values": mx.zeros((1, 2, 4, 16))}
    step = Step(0, (0,), (0,), (1, 2), sample=True)
    for wrong in ({}, {HIDDEN: complete[HIDDEN]}, {**complete, HIDDEN: mx.zeros((1, 3, 64))}):
        with pytest.raises(HopError, match="1 rows of 2 tokens came with"):
            stage.run(step, wrong)
    assert len(stage.run(step, complete).tokens) == 1


def test_an_empty_array_crosses_too():
    carried, data = tensors.to_payload({"chosen": mx.zeros((1, 4, 0), mx.int32), HIDDEN: mx.ones((1, 2))})
    back = tensors.from_payload(bytes(data), carried)
    assert (back["chosen"].shape, back["chosen"].dtype) == ((1, 4, 0), mx.int32)
    assert back[HIDDEN].tolist() == [[1, 1]]


def test_warming_up_takes_memory_for_few_tokens():
    stage = Stage(random_model(CONFIGS["llama"]["tied"]), 0, 3)
    cache = stage._new_cache()
    cache.expect_few_tokens()
    stage._span.forward(mx.array([[0]]), cache.layers, {})
    assert cache.nbytes == 3 * 2 * 2 * 16 * 4  # layers, keys and values, heads, their size, float32
