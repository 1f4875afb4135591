"""Where a node may be: what every source says, each place once, until nobody says anything."""

from __future__ import annotations

from discovery.address import HostPort
from runtime.cluster.whereabouts import Whereabouts

HERE, THERE = HostPort("192.0.2.1", 1), HostPort("192.0.2.2", 2)


def test_places_of_all_sources_come_once_in_the_order_of_the_sources():
    whereabouts = Whereabouts()
    assert whereabouts.say("a", "mdns", (HERE,))
    assert whereabouts.say("a", "trust", (THERE, HERE))
    assert whereabouts.of("a") == [HERE, THERE]
    assert whereabouts.of("b") == []


def test_the_same_again_is_no_news():
    whereabouts = Whereabouts()
    assert not whereabouts.say("a", "mdns", ())
    assert whereabouts.say("a", "mdns", (HERE,))
    assert not whereabouts.say("a", "mdns", (HERE,))


def test_what_a_source_takes_back_the_others_still_say():
    whereabouts = Whereabouts()
    whereabouts.say("a", "mdns", (HERE,))
    whereabouts.say("a", "typed", (THERE,))
    assert whereabouts.named_by("typed") == ["a"]
    assert whereabouts.say("a", "typed", ())
    assert whereabouts.named_by("typed") == []
    assert whereabouts.of("a") == [HERE]
    assert whereabouts.say("a", "mdns", ())
    assert whereabouts.of("a") == []


def test_not_more_than_a_few_places_are_asked():
    whereabouts = Whereabouts()
    whereabouts.say("a", "mdns", tuple(HostPort("192.0.2.3", port) for port in range(1, 100)))
    assert len(whereabouts.of("a")) == 8
