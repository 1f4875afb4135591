"""Changes of the network are noticed, and everything is done again a little later."""

from __future__ import annotations

import asyncio

import pytest

from discovery import multicast
from discovery.interfaces import LanInterface, loopback_interfaces
from discovery.multicast import Clocks, Multicast, addresses_of


def test_a_wall_clock_that_runs_ahead_means_sleep():
    wall, monotonic = 1000.0, 10.0
    clocks = Clocks(lambda: wall, lambda: monotonic)
    wall, monotonic = wall + 60, monotonic + 60
    assert not clocks.slept()
    wall, monotonic = wall + 3600, monotonic + 1
    assert clocks.slept()
    assert not clocks.slept()


def test_ipv4_addresses_of_all_interfaces_come_first():
    interfaces = (LanInterface("en0", 4, ("10.0.0.1", "fe80::1")), LanInterface("en1", 5, ("10.1.0.1", "fe80::2")))
    assert addresses_of(interfaces) == ["10.0.0.1", "10.1.0.1", "fe80::1", "fe80::2"]


class Network:
    """Interfaces that a test changes, and what was made of it."""

    def __init__(self) -> None:
        self.interfaces = loopback_interfaces()
        self.calls: list[tuple[LanInterface, ...]] = []
        self.broken = False
        self._called = asyncio.Event()

    def look(self) -> tuple[LanInterface, ...]:
        return self.interfaces

    async def on_network(self, interfaces: tuple[LanInterface, ...]) -> None:
        self.calls.append(interfaces)
        self._called.set()
        if self.broken:
            raise OSError(49, "Can't assign requested address")

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.calls) < count:
                self._called.clear()
                await self._called.wait()


@pytest.fixture
async def network(monkeypatch):
    monkeypatch.setattr(multicast, "POLL_SECONDS", 0.01)
    network = Network()
    followed = Multicast(network.look, network.on_network)
    await followed.open()
    followed.follow()
    yield network
    await followed.close()


async def test_a_change_is_told_and_twice_more_when_the_network_has_settled(network):
    await network.until(2)  # after the start, which is a change too
    network.interfaces = ()
    await network.until(5)
    assert network.calls == [loopback_interfaces()] * 2 + [()] * 3
    await asyncio.sleep(0.1)
    assert len(network.calls) == 5


async def test_what_went_wrong_is_tried_again(network):
    await network.until(2)
    network.broken = True
    network.interfaces = ()
    await network.until(6)
    network.broken = False
    before = len(network.calls)
    await network.until(before + 3)
    assert set(network.calls[2:]) == {()}


async def test_sleep_is_a_change(network, monkeypatch):
    await network.until(2)
    monkeypatch.setattr(Clocks, "slept", lambda _clocks: len(network.calls) == 2)
    await network.until(3)
    assert network.calls[2] == loopback_interfaces()
