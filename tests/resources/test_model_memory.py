"""Memory for a model on a Mac, by arithmetic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resources.mac.memory import Pages
from resources.model_memory import mac_memory_for_model

GIB = 1 << 30
PAGES = Pages(
    free_bytes=GIB, wired_bytes=3 * GIB, internal_bytes=10 * GIB, purgeable_bytes=GIB, compressor_bytes=4 * GIB
)
amounts = st.integers(0, 1 << 45)


def test_others_keep_what_they_use_and_what_is_compressed():
    assert mac_memory_for_model(64 * GIB, PAGES) == (64 - (10 - 1 + 3 + 4)) * GIB


def test_metal_s_limit_counts_where_it_is_lower():
    assert mac_memory_for_model(64 * GIB, PAGES, gpu_limit_bytes=40 * GIB) == 40 * GIB
    assert mac_memory_for_model(64 * GIB, PAGES, gpu_limit_bytes=56 * GIB) == 48 * GIB


def test_what_our_workers_hold_is_taken_from_the_limit():
    assert mac_memory_for_model(64 * GIB, PAGES, gpu_limit_bytes=40 * GIB, gpu_active_bytes=30 * GIB) == 10 * GIB


@given(amounts, st.builds(Pages, amounts, amounts, amounts, amounts, amounts), st.none() | amounts, amounts)
def test_never_negative_and_never_more_than_there_is(total, pages, limit, active):
    assert 0 <= mac_memory_for_model(total, pages, limit, active) <= total
