"""A worker goes wrong, in every way and at every place: the answer goes on, or everything ends and nothing is lost."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import told
from tests.faults.fleet import listening, ports_of
from tests.faults.harm import HARMS, PLACES, SPLITS
from tests.faults.seen import TOKENS, answer
from tests.running import all_gone, controllers, session

if TYPE_CHECKING:
    from runtime.planning.plan import Mode

pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def undisturbed(running_fleet, demo_model) -> dict[tuple[Mode, str], list[int]]:
    """The greedy answer to each question in each mode."""

    async def answers() -> dict[tuple[Mode, str], list[int]]:
        found: dict[tuple[Mode, str], list[int]] = {}
        for mode, split in SPLITS.items():
            questions = {harm.question(place) for harm in HARMS.values() for place in PLACES[mode]}
            async with session(running_fleet.agents, demo_model, split, mode) as running:
                for question in sorted(questions):
                    found[mode, question] = (await answer(running, request_id=question, question=question)).tokens
        return found

    found = asyncio.run(answers())
    assert all(len(tokens) == TOKENS for tokens in found.values())
    return found


def rows(*, one_by_one: bool) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for mode, places in PLACES.items():
        for name in HARMS:
            found += [(mode, name, place) for place in places] if one_by_one else [(mode, name)]
    return found


@pytest.mark.matrix
@pytest.mark.parametrize(("mode", "name"), rows(one_by_one=False))
async def test_the_answer_goes_on_as_if_nothing_had_been(fleet, demo_model, undisturbed, note, mode, name):
    harm = HARMS[name]
    async with session(fleet.agents, demo_model, SPLITS[mode], mode, keep_running=True) as running:
        for place, index in PLACES[mode].items():
            victim = running.ready.ranks[index]
            fleet.forget_wishes()
            seen = await answer(
                running,
                partial(harm.do, fleet, victim.node_id),
                after_tokens=harm.after_tokens,
                request_id=place,
                question=harm.question(place),
            )
            note(name, f"{mode} {place}", "goes on", seen.noticed_seconds, told(seen))
            assert seen.tokens == undisturbed[mode, harm.question(place)]
            assert victim.node_name in seen.reasons[0]
            assert harm.word in seen.reasons[0]
            assert len(fleet.workers()) == 3


@pytest.mark.matrix
@pytest.mark.parametrize(("mode", "name", "place"), rows(one_by_one=True))
async def test_everything_ends_and_the_next_start_works(fleet, demo_model, undisturbed, note, mode, name, place):
    harm = HARMS[name]
    async with session(fleet.agents, demo_model, SPLITS[mode], mode) as running:
        victim = running.ready.ranks[PLACES[mode][place]]
        processes = [*fleet.workers(), *controllers()]
        ports = ports_of(processes)
        seen = await answer(
            running,
            lambda: harm.do(fleet, victim.node_id),
            after_tokens=harm.after_tokens,
            question=harm.question(place),
        )
        note(name, f"{mode} {place}", "ends", seen.noticed_seconds, told(seen))
        assert seen.failed == seen.reasons[0]
        assert victim.node_name in seen.failed
        assert harm.word in seen.failed
        whole = undisturbed[mode, harm.question(place)]
        assert seen.tokens == whole[: len(seen.tokens)]  # what a person has read stays true
        assert len(seen.tokens) >= harm.after_tokens
        await all_gone(processes)
        assert not ports & listening()
