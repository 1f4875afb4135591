"""Beacons and browsers together, over real mDNS on the loopback."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from discovery import beacon as beacon_module
from discovery import browser as browser_module
from discovery.announcement import SERVICE_TYPE, Sighting, encode_txt, host_name, instance_name
from discovery.beacon import Beacon, NodeIdTaken
from discovery.browser import Browser
from discovery.interfaces import LOOPBACK
from tests.discovery.seen import Seen

ROOT = Path(__file__).parents[2]


def new_id() -> str:
    return secrets.token_hex(32)


@pytest.fixture
def short_probe(monkeypatch):
    """Beacons that hardly look for a twin before they announce."""
    monkeypatch.setattr(beacon_module, "_PROBE_MILLISECONDS", 20)


@pytest.fixture
async def opened():
    """Closes at the end what a test pushed on it, also after a failure."""
    async with AsyncExitStack() as stack:
        yield stack


async def new_browser(opened: AsyncExitStack, seen: Seen, refresh_seconds: float = 30.0) -> Browser:
    browser = Browser(seen, refresh_seconds=refresh_seconds)
    opened.push_async_callback(browser.close)
    await browser.start()
    return browser


async def new_beacon(opened: AsyncExitStack, node_id: str, name: str = "Studio", port: int = 5001) -> Beacon:
    beacon = Beacon(node_id, name, port)
    opened.push_async_callback(beacon.close)
    await beacon.start()
    return beacon


@pytest.mark.usefixtures("short_probe")
async def test_agents_are_seen_by_name_and_port_and_leave_when_they_say_goodbye(opened):
    ids = [new_id() for _ in range(3)]
    seen = Seen(*ids)
    await new_browser(opened, seen)
    beacons = await asyncio.gather(
        *(new_beacon(opened, node_id, f"Mac {index}", 5001 + index) for index, node_id in enumerate(ids))
    )
    await seen.until(lambda events: len(events) == 3)
    assert set(seen.events) == {
        ("added", Sighting(node_id, f"Mac {index}", beacon.boot_id, (LOOPBACK,), 5001 + index))
        for index, (node_id, beacon) in enumerate(zip(ids, beacons, strict=True))
    }
    await beacons[1].close()
    await seen.until(lambda events: len(events) == 4)
    assert seen.events[-1][0] == "removed"
    assert seen.events[-1][1].node_id == ids[1]


@pytest.mark.usefixtures("short_probe")
async def test_an_agent_that_crashed_and_came_back_is_an_update_with_another_boot_id(opened):
    node_id = new_id()
    seen = Seen(node_id)
    await new_browser(opened, seen)
    program = (
        "import asyncio; from discovery.beacon import Beacon\n"
        "async def main():\n"
        f"    await Beacon({node_id!r}, 'Studio', 5001).start(); await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    crashing = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=ROOT)
    try:
        await seen.until(lambda events: len(events) == 1)
    finally:
        crashing.kill()
        await crashing.wait()
    back = await new_beacon(opened, node_id, port=5002)
    await seen.until(lambda events: len(events) == 2)
    (first, old), (second, new) = seen.events
    assert (first, second) == ("added", "updated")
    assert (old.port, new.port, new.boot_id) == (5001, 5002, back.boot_id)
    assert old.boot_id != new.boot_id


async def test_a_second_agent_with_the_same_id_is_refused(opened, monkeypatch):
    monkeypatch.setattr(beacon_module, "_PROBE_MILLISECONDS", 20)
    node_id = new_id()
    seen = Seen(node_id)
    await new_browser(opened, seen)
    await new_beacon(opened, node_id)
    monkeypatch.setattr(beacon_module, "_PROBE_MILLISECONDS", 20_000)  # an answer ends it after a second
    with pytest.raises(NodeIdTaken, match=node_id[:12]):
        await new_beacon(opened, node_id, "Copy of Studio")
    assert [change for change, _ in seen.events] == ["added"]


async def announce(zeroconf: AsyncZeroconf, name: str, properties: dict[str, str], node_id: str) -> None:
    """Announce what no Pomona agent would."""
    info = info_of(name, properties, node_id)
    _announced = await zeroconf.async_register_service(info, cooperating_responders=True)


def info_of(name: str, properties: dict[str, str], node_id: str) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE_TYPE,
        name,
        port=5001,
        properties=properties,
        server=host_name(node_id),
        parsed_addresses=[LOOPBACK],
    )


async def test_bad_announcements_are_passed_over(opened, caplog):
    caplog.set_level(logging.DEBUG, "discovery.browser")
    bad_id, odd_id, good_id = new_id(), new_id(), new_id()
    seen = Seen(bad_id, odd_id, good_id)
    await new_browser(opened, seen)
    zeroconf = AsyncZeroconf(interfaces=[LOOPBACK])
    opened.push_async_callback(zeroconf.async_close)
    txt = encode_txt(bad_id, "Bad", "0011223344556677", 5001)
    await announce(zeroconf, instance_name(bad_id), txt | {"port": "99999"}, bad_id)
    await announce(zeroconf, f"Odd.{SERVICE_TYPE}", encode_txt(odd_id, "Odd", "0011223344556677", 5001), odd_id)
    good = encode_txt(good_id, "Good", "0011223344556677", 5001)
    await announce(zeroconf, instance_name(good_id), good, good_id)
    await seen.until(bool)
    assert [(change, sighting.name) for change, sighting in seen.events] == [("added", "Good")]
    assert "port 99999" in caplog.text
    assert "no agent has such a name" in caplog.text


async def test_a_name_that_changes_all_the_time_is_told_now_and_then(opened):
    node_id = new_id()
    seen = Seen(node_id)
    await new_browser(opened, seen, refresh_seconds=1.0)
    zeroconf = AsyncZeroconf(interfaces=[LOOPBACK])
    opened.push_async_callback(zeroconf.async_close)
    boots = [secrets.token_hex(8) for _ in range(60)]
    await announce(zeroconf, instance_name(node_id), encode_txt(node_id, "Odd", boots[0], 5001), node_id)
    await seen.until(bool)
    for boot_id in boots[1:]:
        info = info_of(instance_name(node_id), encode_txt(node_id, "Odd", boot_id, 5001), node_id)
        _announced = await zeroconf.async_update_service(info)
        await asyncio.sleep(0.02)
    await seen.until(lambda events: events[-1][1].boot_id == boots[-1])
    assert len(seen.events) < 20


@pytest.mark.usefixtures("short_probe")
async def test_a_browser_made_anew_repeats_nothing_and_misses_nothing(opened, monkeypatch):
    made = 0
    often = asyncio.Event()

    class Counted(AsyncServiceBrowser):
        def __init__(self, *args, **kwargs):
            nonlocal made
            made += 1
            if made == 5:
                often.set()
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(browser_module, "AsyncServiceBrowser", Counted)
    node_id = new_id()
    seen = Seen(node_id)
    await new_browser(opened, seen, refresh_seconds=0.05)
    beacon = await new_beacon(opened, node_id)
    await often.wait()
    await beacon.close()
    await seen.until(lambda events: len(events) == 2)
    assert [change for change, _ in seen.events] == ["added", "removed"]


@pytest.mark.usefixtures("short_probe")
async def test_nothing_is_told_after_close_and_no_task_is_left(opened):
    node_id = new_id()
    seen = Seen(node_id)
    tasks = asyncio.all_tasks()
    browser = await new_browser(opened, seen)
    await browser.close()
    beacon = await new_beacon(opened, node_id)
    await beacon.close()
    assert not seen.events
    assert asyncio.all_tasks() == tasks
