"""Every model type that tensor mode knows, shared by ranks of a real ring, computes what the whole model computes."""

from __future__ import annotations

import pytest

from runtime.models.tensor_mode.types import SHARINGS, WRAPPERS
from tests.matrix.configs import CONFIGS
from tests.matrix.shared import CASES, SHARED_VARIANTS, assert_identical, planned_bytes, shareable


@pytest.mark.matrix
@pytest.mark.parametrize(("ranks", "name", "variant"), CASES, ids=str)
def test_every_type_in_shares_is_the_whole_model(ring, ranks, name, variant, measured):
    config = shareable(CONFIGS[name][variant], ranks)
    answers = ring(ranks).compare(config)
    assert_identical(answers)
    for answer in answers:
        # The plan counts norms that span all heads as whole: 1.2 % of the smallest model here, nothing of a real one.
        assert answer["held_bytes"] == pytest.approx(planned_bytes(answer["sizes"], config, ranks), rel=0.015)
    measured.shares[name][variant].add(ranks)


@pytest.mark.matrix
def test_granite_4_with_experts_and_without_mamba(ring):
    config = {**CONFIGS["granitemoehybrid"]["experts"], "layer_types": ["attention"] * 7}
    assert_identical(ring(2).compare(shareable(config, 2)))


def test_more_than_ninety_types_are_in_the_matrix():
    assert len({name for name, _variant in SHARED_VARIANTS} & {*SHARINGS, *WRAPPERS}) > 90
