"""Every layer has one owner, in order, within its budget; or one sentence says why not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.models.layout import ModelLayout
from runtime.models.tensor_mode.refusal import tensor_refusals
from runtime.planning.plan import (
    Plan,
    PlanNode,
    Refusal,
    Shortfall,
    even_split,
    make_plan,
    refuse_tensor,
    stage_weight_bytes,
)

MIB, GIB = 2**20, 2**30


def layout_of(
    layer_bytes: tuple[int, ...], *, tied: bool = False, heads: int = 12, key_value_heads: int = 6
) -> ModelLayout:
    return ModelLayout(
        name="Tiny-Llama",
        model_type="llama",
        layer_bytes=layer_bytes,
        embedding_bytes=1000,
        head_bytes=70,
        tied_embedding=tied,
        attention_heads=heads,
        key_value_heads=key_value_heads,
        context_tokens=2048,
        layer_divided_bytes=tuple(count // 2 for count in layer_bytes),
        head_divided_bytes=7,
        tensor_refusals=tensor_refusals(
            {
                "model_type": "llama",
                "hidden_size": 768,
                "num_attention_heads": heads,
                "num_key_value_heads": key_value_heads,
                "intermediate_size": 720720,
            },
            "Tiny-Llama",
        ),
    )


def nodes_of(*budgets: int) -> list[PlanNode]:
    return [PlanNode(f"id{index}", f"Mac {index}", budget, reserve_bytes=0) for index, budget in enumerate(budgets)]


def planned(*arguments, **options) -> Plan:
    plan = make_plan(*arguments, **options)
    assert isinstance(plan, Plan), plan
    return plan


def refused(*arguments, **options) -> Refusal:
    refusal = make_plan(*arguments, **options)
    assert isinstance(refusal, Refusal), refusal
    assert refusal.reason.endswith(".")
    assert refusal.reason.isprintable()
    return refusal


LAYOUTS = st.builds(layout_of, st.lists(st.integers(1, 10**9), min_size=1, max_size=40).map(tuple), tied=st.booleans())
WEALTH = 2**50


@st.composite
def splits(draw):
    """A layout and a split of its layers, some of whose parts are 0."""
    layout = draw(LAYOUTS)
    layer_count = len(layout.layer_bytes)
    cuts = sorted(draw(st.lists(st.integers(0, layer_count), max_size=6)))
    return layout, tuple(end - begin for begin, end in zip([0, *cuts], [*cuts, layer_count], strict=True))


@given(splits())
def test_every_layer_has_one_owner_in_the_order_of_the_nodes(case):
    layout, split = case
    plan = planned(layout, nodes_of(*[WEALTH] * len(split)), split)
    owners = [
        rank.node_id
        for stage in plan.stages
        for rank in stage.ranks
        for _ in range(stage.first_layer, stage.last_layer + 1)
    ]
    assert owners == [f"id{index}" for index, count in enumerate(split) for _ in range(count)]
    assert [stage.layer_count for stage in plan.stages] == [count for count in split if count]
    assert len(plan.ranks) == len(plan.stages)


@given(splits())
def test_stages_hold_the_model_once_and_a_tied_embedding_on_both_ends(case):
    layout, split = case
    plan = planned(layout, nodes_of(*[WEALTH] * len(split)), split)
    held = sum(rank.weight_bytes for rank in plan.ranks)
    twice = layout.embedding_bytes if layout.tied_embedding and len(plan.stages) > 1 else 0
    assert held == layout.weight_bytes + twice


@given(splits(), st.data())
def test_budgets_are_kept_or_the_shortfalls_named_to_the_byte(case, data):
    layout, split = case
    budgets = data.draw(st.lists(st.integers(0, 4 * 10**9), min_size=len(split), max_size=len(split)))
    needs = {
        rank.node_id: rank.weight_bytes
        for stage in planned(layout, nodes_of(*[WEALTH] * len(split)), split).stages
        for rank in stage.ranks
    }
    nodes = nodes_of(*budgets)
    missing = {
        node.node_id: needs[node.node_id] - node.budget_bytes
        for node in nodes
        if needs.get(node.node_id, 0) > node.budget_bytes
    }
    result = make_plan(layout, nodes, split)
    if missing:
        assert isinstance(result, Refusal)
        assert {short.node_id: short.missing_bytes for short in result.shortfalls} == missing
    else:
        assert isinstance(result, Plan)


@given(LAYOUTS, st.lists(st.integers(-3, 50), max_size=6), st.integers(0, 6))
def test_any_split_is_a_plan_or_one_sentence(layout, split, node_count):
    result = make_plan(layout, nodes_of(*[WEALTH] * node_count), split)
    fits = len(split) == node_count and min(split, default=0) >= 0 and sum(split) == len(layout.layer_bytes)
    assert isinstance(result, Plan) == (fits and node_count > 0)


@given(LAYOUTS, st.integers(1, 50))
def test_without_a_split_layers_are_shared_evenly(layout, node_count):
    plan = planned(layout, nodes_of(*[WEALTH] * node_count))
    counts = [stage.layer_count for stage in plan.stages]
    assert max(counts) - min(counts) <= 1
    assert len(counts) == min(node_count, len(layout.layer_bytes))


def test_the_first_nodes_take_the_remainder():
    assert even_split(30, 4) == (8, 8, 7, 7)
    assert even_split(2, 3) == (1, 1, 0)


@given(splits())
def test_a_plan_survives_the_wire(case):
    layout, split = case
    plan = planned(layout, nodes_of(*[WEALTH] * len(split)), split)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


@pytest.mark.parametrize(
    "stages",
    [[], [(0, 1)], [(0, 1), (3, 3)], [(0, 2), (2, 3)], [(2, 3), (0, 1)], [(0, 3), (4, 3)], [(1, 3)], [(0, 4)]],
)
def test_a_plan_with_gaps_or_overlaps_does_not_decode(stages):
    rank = {"node_id": "id0", "node_name": "Mac 0", "weight_bytes": 1}
    encoded = [{"first_layer": first, "last_layer": last, "ranks": [rank]} for first, last in stages]
    plan = {"model": "m", "mode": "pipeline", "layer_count": 4, "stages": encoded}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(plan, Plan)


def test_a_stage_without_ranks_does_not_decode():
    stage = {"first_layer": 0, "last_layer": 3, "ranks": []}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"model": "m", "mode": "pipeline", "layer_count": 4, "stages": [stage]}, Plan)


def test_embedding_is_on_the_first_stage_norm_and_head_on_the_last():
    layout = layout_of((10, 20, 30))
    assert [stage_weight_bytes(layout, *edges) for edges in ((0, 1), (1, 2), (2, 3))] == [1010, 20, 100]
    assert stage_weight_bytes(layout, 0, 3) == layout.weight_bytes == 1130


def test_a_tied_embedding_is_counted_on_both_ends_but_once_on_one_node():
    layout = layout_of((10, 20, 30), tied=True)
    assert [stage_weight_bytes(layout, *edges) for edges in ((0, 1), (1, 2), (2, 3))] == [1010, 20, 1100]
    assert stage_weight_bytes(layout, 0, 3) == 1130


@pytest.mark.parametrize(
    ("split", "complaint", "remedy"),
    [
        ((5, 18), "The split 5,18 names 2 parts, but there are 3 nodes", "one number of layers for each node"),
        ((5, 18, 9), "The split 5,18,9 adds up to 32 layers, but Tiny-Llama has 30", "change the numbers"),
        ((-1, 24, 7), "The split -1,24,7 has a negative number of layers", ""),
    ],
)
def test_a_wrong_split_is_explained(split, complaint, remedy):
    reason = refused(layout_of((1,) * 30), nodes_of(*[WEALTH] * 3), split).reason
    assert reason.startswith(complaint)
    assert remedy in reason


def test_without_nodes_there_is_no_plan():
    for mode in ("pipeline", "tensor"):
        assert "no node" in refused(layout_of((1, 1)), [], mode=mode).reason


def test_a_model_without_layers_is_refused():
    assert "no layers" in refused(layout_of(()), nodes_of(WEALTH)).reason


def test_a_node_is_given_once():
    for mode in ("pipeline", "tensor"):
        assert refused(layout_of((1, 1)), nodes_of(WEALTH) * 2, mode=mode).reason == (
            "Mac 0 is named twice: give each node once."
        )


LARGE = (2 * GIB,) * 4


def test_a_shortfall_names_the_worst_node_and_the_way_out():
    refusal = refused(layout_of(LARGE), nodes_of(16 * GIB, 5 * GIB, GIB), (1, 1, 2))
    assert refusal.shortfalls == (Shortfall("id2", "Mac 2", 3 * GIB + 70),)
    assert refusal.reason == "Mac 2 lacks 3.1 GB for its part of Tiny-Llama; let Pomona share the layers."
    assert refusal.draft is not None
    assert [stage.ranks[0].room_bytes for stage in refusal.draft.stages][2] == -(3 * GIB + 70)


def test_a_boundary_to_move_is_something_to_click():
    layout, nodes = layout_of(LARGE), nodes_of(16 * GIB, 3 * GIB, 3 * GIB)
    (change,) = refused(layout, nodes, (1, 2, 1)).changes
    assert (change.kind, change.amount, change.counts) == ("boundary", 1, (2, 1, 1))
    assert change.words == "move 1 layer from Mac 1 to Mac 0"
    planned(layout, nodes, change.counts)


def test_too_little_memory_everywhere_needs_another_node():
    refusal = refused(layout_of(LARGE), nodes_of(3 * GIB, GIB), (2, 2))
    assert refusal.reason == "Mac 1 lacks 3.1 GB for its part of Tiny-Llama; add a node with 6.1 GB to spare."
    assert refused(layout_of((1, 1)), nodes_of(10)).reason == (
        "Mac 0 lacks 2 kB for its part of Tiny-Llama; add a node with 1 MB to spare."
    )


@pytest.mark.parametrize(
    ("missing", "shown"), [(1, "1 kB"), (MIB, "1 MB"), (MIB + 1, "2 MB"), (GIB - 1, "1024 MB"), (GIB, "1.0 GB")]
)
def test_what_is_missing_is_never_shown_as_nothing(missing, shown):
    need = 1072
    layout = layout_of((1, 1))
    big = msgspec.structs.replace(layout, embedding_bytes=1000 + GIB)
    assert f"lacks {shown} " in refused(big, nodes_of(need + GIB - missing)).reason


# Tensor mode -------------------------------------------------------------------------------------------------------


@given(LAYOUTS, st.sampled_from([1, 2, 3, 6]))
def test_in_tensor_mode_every_node_has_its_share_of_every_layer(layout, node_count):
    plan = planned(layout, nodes_of(*[WEALTH] * node_count), mode="tensor")
    (stage,) = plan.stages
    assert (stage.first_layer, stage.layer_count) == (0, len(layout.layer_bytes))
    assert [rank.node_id for rank in stage.ranks] == [f"id{index}" for index in range(node_count)]
    (share,) = {rank.weight_bytes for rank in stage.ranks}
    divided = sum(layout.layer_divided_bytes) + layout.head_divided_bytes
    whole = layout.weight_bytes - divided
    assert 0 <= (share - whole) * node_count - divided < node_count * (len(layout.layer_bytes) + 1)


@pytest.mark.parametrize(
    ("node_count", "complaint"),
    [(4, "6 key-value heads"), (5, "12 attention heads"), (12, "6 key-value heads"), (16, "12 attention heads")],
)
def test_heads_that_cannot_be_shared_equally_are_refused(node_count, complaint):
    refusal = refused(layout_of((1,) * 4), nodes_of(*[WEALTH] * node_count), mode="tensor")
    assert complaint in refusal.reason


def test_one_rank_can_always_have_everything():
    layout = msgspec.structs.replace(layout_of((1,) * 4), tensor_refusals=("Not this one.",) * 15)
    assert refuse_tensor(layout, 1) is None
    planned(layout, nodes_of(WEALTH), mode="tensor")


def test_what_the_layout_says_against_tensor_mode_is_the_refusal():
    layout = msgspec.structs.replace(layout_of((1,) * 4), tensor_refusals=("", "Not three."))
    planned(layout, nodes_of(WEALTH, WEALTH), mode="tensor")
    assert refused(layout, nodes_of(*[WEALTH] * 3), mode="tensor").reason == "Not three."


def test_a_refusal_in_tensor_mode_names_the_numbers_of_nodes_that_can():
    assert refused(layout_of((1,) * 4), nodes_of(*[WEALTH] * 4), mode="tensor").reason == (
        "Tiny-Llama has 6 key-value heads, which 4 nodes cannot share equally; "
        "choose 2, 3 or 6 nodes, or pipeline mode."
    )


def test_a_group_larger_than_any_that_was_thought_of_is_refused():
    assert "at most 16 nodes" in refused(layout_of((1,) * 4), nodes_of(*[WEALTH] * 17), mode="tensor").reason


def test_ranks_of_any_stage_hold_what_cannot_be_divided_whole():
    layout = layout_of((10, 20, 30))
    assert [stage_weight_bytes(layout, *edges, 2) for edges in ((0, 1), (1, 2), (2, 3))] == [1008, 15, 89]


def test_tensor_mode_takes_no_split():
    assert "no split" in refused(layout_of((1, 1)), nodes_of(WEALTH, WEALTH), (1, 1), "tensor").reason


def test_a_shortfall_in_tensor_mode_does_not_speak_of_layers_to_move():
    refusal = refused(layout_of(LARGE), nodes_of(16 * GIB, GIB), mode="tensor")
    assert refusal.reason == "Mac 1 lacks 5.1 GB for its part of Tiny-Llama; use pipeline mode."
    assert [change.kind for change in refusal.changes] == ["mode"]
