"""Seconds and bytes by hand: a stage, a hop, a pipeline, a prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.planning.budget import stage_bytes
from runtime.planning.cost import (
    REQUESTS_PER_STEP,
    CopiedCache,
    LayerCost,
    LinkSpeed,
    ModelCost,
    NodeSpeed,
    StageSeconds,
    decode_seconds,
    hop_seconds,
    layer_step_seconds,
    predict,
    prefill_seconds,
    reduce_seconds,
    time_to_first_token,
)
from runtime.planning.evaluation import evaluate, stages_of
from runtime.planning.problem import CostedNode, SplitProblem, uniform_links

SPEED = NodeSpeed(bytes_per_second=1000, flops_per_second=100, layer_overhead_seconds=0.5)
LAYERS = (LayerCost(400, 300, kv_bytes_per_token=2, flops_per_token=10), LayerCost(400, 400, flops_per_token=30))


def model_of(*, tied: bool) -> ModelCost:
    return ModelCost("tiny", LAYERS, 70, 30, tied, hidden_bytes=8)


def test_a_cache_grows_to_its_window_and_a_state_not_at_all():
    assert LayerCost(1, 1, kv_bytes_per_token=3).cache_bytes(100) == 300
    assert LayerCost(1, 1, kv_bytes_per_token=3, window_tokens=10).cache_bytes(100) == 30
    assert LayerCost(1, 1, kv_bytes_per_token=3, window_tokens=10).cache_bytes(4) == 12
    assert LayerCost(1, 1, state_bytes=7).cache_bytes(100) == 7


def test_decoding_reads_active_weights_and_cache_and_the_last_stage_the_head():
    assert decode_seconds(model_of(tied=False), SPEED, 0, 1, 50) == pytest.approx(0.3 + 0.1 + 0.5)
    assert decode_seconds(model_of(tied=False), SPEED, 1, 2, 50) == pytest.approx(0.4 + 0.5 + 0.03)
    assert decode_seconds(model_of(tied=True), SPEED, 1, 2, 50) == pytest.approx(0.4 + 0.5 + 0.1)


def test_a_cache_that_is_read_at_a_rate_of_its_own_takes_its_own_time():
    speed = replace(SPEED, cache_bytes_per_second=200)
    assert decode_seconds(model_of(tied=False), speed, 0, 1, 50) == pytest.approx(0.3 + 0.5 + 0.5)
    assert layer_step_seconds(LAYERS[0], replace(speed, flops_per_second=1e9), 50) == pytest.approx(0.3 + 0.5 + 0.5)


def test_a_chunk_takes_its_arithmetic_or_reading_the_weights():
    assert prefill_seconds(model_of(tied=False), SPEED, 0, 2, 100) == pytest.approx(40 + 1)
    assert prefill_seconds(model_of(tied=False), SPEED, 0, 2, 1) == pytest.approx(0.7 + 1)


def test_a_hop_is_half_a_round_trip_and_the_bytes():
    assert hop_seconds(LinkSpeed(0.2, 50), 10) == pytest.approx(0.1 + 0.2)


def test_a_chat_waits_for_all_and_many_requests_for_the_slowest():
    predicted = predict([0.1, 0.2], [0.5, 0.4], [0.05, 0.05])
    assert predicted.chat_tokens_per_second == pytest.approx(2.5)
    assert predicted.requests_tokens_per_second == pytest.approx(REQUESTS_PER_STEP / 0.5)


def test_a_step_of_many_requests_reads_the_experts_that_it_visits_or_computes_longer():
    layer = LayerCost(400, 100, kv_bytes_per_token=2, flops_per_token=10, batch_bytes=300)
    assert layer_step_seconds(layer, SPEED, 50) == pytest.approx(REQUESTS_PER_STEP * 10 / 100 + 0.5)
    quick = replace(SPEED, flops_per_second=1e9)
    assert layer_step_seconds(layer, quick, 50) == pytest.approx(0.3 + 0.1 + 0.5)
    assert layer_step_seconds(replace(layer, batch_bytes=None), quick, 50) == pytest.approx(0.1 + 0.1 + 0.5)


def test_all_reduces_go_round_the_ring_twice():
    assert reduce_seconds(LinkSpeed(0.2, 50), 10, 2, 1) == pytest.approx(2 * 2 * (0.1 + 5 / 50))
    assert reduce_seconds(LinkSpeed(0.2, 50), 10, 1, 1) == 0


def test_a_rank_of_a_group_holds_its_part_and_what_cannot_be_divided():
    layer = LayerCost(400, 400, kv_bytes_per_token=6, divided_bytes=300, cache_divides=True, flops_per_token=9)
    part = layer.shared(3)
    assert (part.weight_bytes, part.active_bytes, part.kv_bytes_per_token, part.flops_per_token) == (200, 200, 2, 3)
    assert replace(layer, cache_divides=False).shared(3).kv_bytes_per_token == 6
    model = ModelCost("tiny", (layer,), 70, 30, False, 8, head_divided_bytes=20)
    assert model.shared(1) is model
    assert (model.shared(2).head_bytes, model.shared(2).embedding_bytes) == (20, 70)


def test_chunks_of_a_prompt_fill_the_pipeline():
    stages = [StageSeconds(0.1, 2, 0.01, 0.5), StageSeconds(0.2, 3, 0.01, 0.5)]
    step = 0.1 + 0.2 + 0.02
    assert time_to_first_token(stages, 0) == pytest.approx(step)
    assert time_to_first_token(stages, 1) == pytest.approx(2 + 0.5 + 3 + step)
    assert time_to_first_token(stages, 4) == pytest.approx(2 + 0.5 + 3 + 3 * 3 + step)
    slow_link = [StageSeconds(0.1, 2, 0.01, 9), StageSeconds(0.2, 3, 0.01, 9)]
    assert time_to_first_token(slow_link, 4) == pytest.approx(2 + 9 + 3 + 3 * 9 + step)


def test_a_stage_holds_copies_of_the_earlier_caches_that_its_layers_work_on():
    own, shared = LayerCost(5, 5, 4, cache_divides=True), LayerCost(5, 5, 4, keeps_cache=False, cache_divides=True)
    assert (shared.cache_bytes(10), shared.cache_read_bytes(10)) == (0, 40)
    copy = CopiedCache(1, frozenset({3}), LayerCost(0, 0, 4, cache_divides=True))
    model = ModelCost("tiny", (own, own, own, shared, own), 0, 0, False, 8, copies=(copy,))
    runs = [(0, 5), (1, 5), (2, 3), (2, 4), (3, 4), (4, 5)]
    assert [model.copied_bytes(*run, 10) for run in runs] == [0, 0, 0, 40, 40, 0]
    assert model.shared(2).copied_bytes(3, 4, 10) == 20
    assert stage_bytes(model, CostedNode("Mac", 1000, 0, SPEED), 2, 4, 10).kv_bytes == 40 + 40


@pytest.mark.parametrize(("tied", "weights"), [(False, (470, 430)), (True, (470, 500))])
def test_ends_hold_embedding_and_head(tied, weights):
    node = CostedNode("Mac", 1000, 100, SPEED)
    first, last = stage_bytes(model_of(tied=tied), node, 0, 1, 50), stage_bytes(model_of(tied=tied), node, 1, 2, 50)
    assert (first.weight_bytes, last.weight_bytes) == weights
    assert first.kv_bytes == 100
    assert first.room_bytes == 1000 - 100 - 470 - 100
    assert stage_bytes(model_of(tied=tied), node, 0, 2, 50).weight_bytes == 900


def test_a_split_has_every_layer_once_and_every_node_once():
    nodes = tuple(CostedNode(name, 1000, 0, SPEED) for name in "ab")
    problem = SplitProblem(model_of(tied=False), nodes, uniform_links(2, LinkSpeed(0, 1)), 0)
    assert evaluate(problem, stages_of((0, 2))).node_names == ("b",)
    for wrong in [((0, 1),), ((0, 1), (0, 2)), ((0, 0), (1, 2)), ((0, 2), (1, 1)), ((0, 3),)]:
        with pytest.raises(ValueError, match=r"stage|layer"):
            evaluate(problem, wrong)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan")])
def test_speeds_are_above_zero(wrong):
    with pytest.raises(ValueError, match="above zero"):
        NodeSpeed(wrong, 1)
    with pytest.raises(ValueError, match="above zero"):
        LinkSpeed(0, wrong)
