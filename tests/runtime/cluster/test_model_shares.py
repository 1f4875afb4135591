"""Who gets which part of a model from whom, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from resources.node import NodeResources, Versions
from runtime.agent.models.messages import Held
from runtime.cluster.model_shares import NodeFetch, Way, assign, nobody_has, sentence
from runtime.cluster.nodes import KnownNode
from runtime.models.parts import Part

LAYERS = [f"layer-{index:05}" for index in range(4)]
PARTS = {name: Part(name, (), b"", (), 2 * 10**9) for name in LAYERS}


def node(name: str) -> KnownNode:
    resources = NodeResources(name.lower(), name, "M4", 1, 1, virtual=False, versions=Versions("", "", "", "", ""))
    return KnownNode("10.0.0.1", 1, resources)


def held(*parts: str, converted: tuple[str, ...] = ()) -> Held:
    return Held(1, parts, has_manifest=bool(parts), converted=converted)


@dataclass
class Shares:
    fetches: dict[str, NodeFetch]

    @classmethod
    def of(cls, has: dict[str, Held], wanted: dict[str, list[str]]) -> Shares:
        nodes = [node(name) for name in has]
        by_id = {name.lower(): its for name, its in has.items()}
        found = assign(nodes, by_id, {name.lower(): its for name, its in wanted.items()})
        return cls({fetch.name: fetch for fetch in found})

    def words(self, name: str, **ways: Way) -> str:
        fetch = self.fetches[name]
        names = {other.node_id: other.name for other in self.fetches.values()}
        return sentence(fetch, PARTS, names, ways)


def test_what_a_peer_has_comes_from_there_by_its_link_and_the_rest_from_the_hub():
    shares = Shares.of({"mini": held(LAYERS[0]), "Studio": held(LAYERS[1], LAYERS[2])}, {"mini": LAYERS})
    fetch = shares.fetches["mini"]
    assert (fetch.peers, fetch.later, fetch.hub) == ({"studio": LAYERS[1:3]}, {}, LAYERS[3:])
    words = shares.words("mini", studio=Way("10.0.0.2", "Thunderbolt", 1e8))
    assert words == "mini: has 1 of 4 layers; 4.0 GB from Studio over Thunderbolt (40 s); 2.0 GB from the hub"


def test_what_several_have_is_counted_to_the_fastest():
    has = {"mini": held(), "Air": held(*LAYERS[:2]), "Studio": held(*LAYERS[:2])}
    shares = Shares.of(has, {"mini": LAYERS[:2]})
    assert set(shares.fetches["mini"].peers) == {"air", "studio"}
    ways = {"air": Way("10.0.0.3", "Wi-Fi", 2e7), "studio": Way("10.0.0.2", "Ethernet 10G", 1e9)}
    assert shares.words("mini", **ways) == "mini: has 0 of 2 layers; 4.0 GB from Studio over Ethernet 10G (4 s)"


def test_a_link_that_was_not_measured_promises_no_time():
    shares = Shares.of({"mini": held(), "Studio": held(*LAYERS)}, {"mini": LAYERS[:1]})
    assert shares.words("mini", studio=Way("127.0.0.1")) == "mini: has 0 of 1 layers; 2.0 GB from Studio"


@pytest.mark.parametrize(("rate", "words"), [(4e9, "less than 1 s"), (2.5e7, "80 s"), (1e7, "3 min")])
def test_times_are_said_as_a_person_says_them(rate, words):
    shares = Shares.of({"mini": held(), "Studio": held(*LAYERS)}, {"mini": LAYERS[:1]})
    assert shares.words("mini", studio=Way("10.0.0.2", "Wi-Fi", rate)).endswith(f"over Wi-Fi ({words})")


def test_the_hub_is_asked_once_and_by_whoever_has_the_least_of_it():
    shares = Shares.of({"mini": held(), "Studio": held()}, {"mini": LAYERS, "Studio": LAYERS})
    mini, studio = shares.fetches["mini"], shares.fetches["Studio"]
    assert sorted(mini.hub + studio.hub) == LAYERS
    assert len(mini.hub) == len(studio.hub)
    assert (mini.later, studio.later) == ({"studio": studio.hub}, {"mini": mini.hub})


def test_what_a_node_converted_for_itself_is_there_and_not_for_others():
    has = {"mini": held(converted=tuple(LAYERS)), "Studio": held()}
    shares = Shares.of(has, {"mini": LAYERS[:2], "Studio": LAYERS[2:]})
    assert (shares.fetches["mini"].givers, shares.fetches["mini"].hub) == (set(), [])
    assert shares.fetches["Studio"].hub == LAYERS[2:]


def test_what_nobody_has():
    assert nobody_has({"a": held(*LAYERS[:2])}, {"a": LAYERS[:3], "b": LAYERS[1:2]}) == {LAYERS[2]}
