"""RDMA between two Macs: what is said to be missing, and what is never advised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.mac.thunderbolt import ThunderboltPort
from resources.rdma_verdict import RdmaFacts, RdmaVerdict, has_thunderbolt_5, rdma_verdict

BOOK = RdmaFacts("Book", thunderbolt_5=True, macos=(26, 2), enabled=True, port_active=True)
STUDIO = replace(BOOK, name="Studio", macos=(26, 6, 2))


def test_all_there():
    assert rdma_verdict(BOOK, STUDIO) == RdmaVerdict(possible=True, reasons=())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"thunderbolt_5": False}, "Thunderbolt 5 on both ends; Studio has"),
        ({"macos": (26, 1)}, "Studio runs macOS 26.1"),
        ({"enabled": False}, "RDMA is off on Studio: start it in Recovery"),
        ({"port_active": False}, "port of Studio is not active"),
    ],
)
def test_what_is_missing_is_named_on_either_end(change, words):
    lacking = replace(STUDIO, **change)
    for verdict in (rdma_verdict(BOOK, lacking), rdma_verdict(lacking, BOOK)):
        assert verdict.possible is False
        (reason,) = verdict.reasons
        assert words in reason


@pytest.mark.parametrize("field", ["thunderbolt_5", "macos", "enabled", "port_active"])
def test_what_is_unknown_is_neither_yes_nor_no(field):
    verdict = rdma_verdict(replace(BOOK, **dict[str, Any]({field: None})), STUDIO)
    assert verdict.possible is None
    assert len(verdict.reasons) == 1


def test_everything_that_is_missing_is_named_at_once():
    verdict = rdma_verdict(replace(BOOK, macos=(15, 5)), replace(STUDIO, enabled=False, port_active=None))
    assert verdict.possible is False
    assert [word in reason for word, reason in zip(("15.5", "Recovery"), verdict.reasons, strict=True)] == [True, True]


maybe = st.sampled_from([True, False, None])
facts = st.builds(
    RdmaFacts, st.just("Mac"), maybe, st.none() | st.tuples(st.integers(14, 27), st.integers(0, 9)), maybe, maybe
)


@given(facts, facts)
def test_a_mac_without_thunderbolt_5_is_never_told_to_enable_rdma(here, there):
    verdict = rdma_verdict(here, there)
    assert (verdict.possible is True) == (not verdict.reasons)
    if here.thunderbolt_5 is False or there.thunderbolt_5 is False:
        assert verdict.possible is False
        assert not any("enable" in reason or "Recovery" in reason for reason in verdict.reasons)
    if not (here.thunderbolt_5 or there.thunderbolt_5):
        assert not any("rdma_ctl" in reason for reason in verdict.reasons)


def port(speed: int | None, *, connected: bool = False) -> ThunderboltPort:
    return ThunderboltPort("id", 1, connected, speed)


@pytest.mark.parametrize(
    ("chip", "ports", "has"),
    [
        ("Apple M9", [port(40), port(120)], True),
        ("Apple M9", [port(80, connected=True)], True),
        ("Apple M9", [port(40)], False),
        ("Apple M9", [port(40, connected=True)], None),
        ("Apple M9", [], None),
        ("Apple M4", [port(40, connected=True)], False),
        ("Apple M4", [], False),
        ("Apple M4 Pro", [port(40, connected=True)], True),
        ("Apple M3 Ultra", [], True),
    ],
)
def test_ports_tell_before_the_chip_does(chip, ports, has):
    assert has_thunderbolt_5(chip, ports) is has
