"""What the window shows of a split comes from the planner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui import samples
from gui.preview import Fit, make_preview
from gui.split.model import Split, even
from runtime.planning.plan import Plan, Refusal, stage_weight_bytes

MACS = [known.resources for known in samples.macs()]
VIRTUAL = [known.resources for known in samples.virtual_nodes()]


def fits(preview):
    return [share.fit for share in preview.shares]


def test_a_split_that_fits_is_a_plan_with_each_nodes_bytes_and_layers():
    preview = make_preview(samples.SMALL_MODEL, VIRTUAL, Split((5, 18, 7)), "pipeline")
    assert isinstance(preview.verdict, Plan)
    assert preview.refusal is None
    assert fits(preview) == [Fit.FITS] * 3
    assert [(share.first_layer, share.last_layer) for share in preview.shares] == [(0, 4), (5, 22), (23, 29)]
    assert preview.shares[1].weight_bytes == stage_weight_bytes(samples.SMALL_MODEL, 5, 23)


def test_a_node_that_lacks_memory_says_how_much_and_what_it_would_need():
    preview = make_preview(samples.LARGE_MODEL, MACS, Split((26, 25, 6, 4)), "pipeline")
    assert isinstance(preview.verdict, Refusal)
    assert preview.plan is None
    over = preview.shares[1]
    assert over.fit is Fit.OVER
    assert over.needed_bytes - over.missing_bytes == MACS[1].memory_available_bytes
    assert Fit.OVER not in [share.fit for share in preview.shares if share is not over]


def test_a_node_with_little_to_spare_is_tight():
    preview = make_preview(samples.LARGE_MODEL, MACS, Split((33, 28, 0, 0)), "pipeline")  # 165 of 178 GB
    assert preview.shares[0].fit is Fit.TIGHT


def test_a_node_without_layers_is_left_out_and_the_rest_still_start():
    preview = make_preview(samples.SMALL_MODEL, VIRTUAL, Split((10, 0, 20)), "pipeline")
    assert fits(preview) == [Fit.FITS, Fit.LEFT_OUT, Fit.FITS]
    assert preview.plan is not None
    assert len(preview.plan.ranks) == 2


def test_in_tensor_mode_every_node_holds_a_part_of_every_layer():
    preview = make_preview(samples.SMALL_MODEL, VIRTUAL, Split((30, 0, 0)), "tensor")
    assert preview.plan is not None
    assert len({share.weight_bytes for share in preview.shares}) == 1
    assert all(share.layer_count == 30 for share in preview.shares)


def test_a_refused_tensor_mode_gives_no_node_a_share_and_says_why():
    preview = make_preview(samples.SMALL_MODEL, MACS, Split((8, 8, 7, 7)), "tensor")
    assert set(fits(preview)) == {Fit.UNKNOWN}
    assert "heads" in (preview.refusal or "")


def test_no_node_is_a_refusal_in_words():
    assert make_preview(samples.SMALL_MODEL, [], Split(()), "pipeline").refusal


@given(st.integers(1, 16), st.sampled_from(["pipeline", "tensor"]))
def test_every_number_of_nodes_has_a_preview(count, mode):
    nodes = [known.resources for known in samples.many_nodes(count)]
    preview = make_preview(samples.LARGE_MODEL, nodes, even(61, count), mode)
    assert len(preview.shares) == count
    assert (preview.plan is None) == (preview.refusal is not None)


@pytest.mark.parametrize("mode", ["pipeline", "tensor"])
def test_a_plan_and_its_shares_agree(mode):
    preview = make_preview(samples.SMALL_MODEL, VIRTUAL, even(30, 3), mode)
    assert preview.plan is not None
    planned = {rank.node_id: rank.weight_bytes for rank in preview.plan.ranks}
    assert planned == {share.node.node_id: share.weight_bytes for share in preview.shares}
