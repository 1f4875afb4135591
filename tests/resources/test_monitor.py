"""What a Mac is asked, and when: recorded answers instead of a Mac."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from resources import survey
from resources.mac.gpu import Gpu, MetalDevice
from resources.mac.macmon import Sensors
from resources.mac.system import MacSystem
from resources.monitor import Monitor, MonitorTimes, Reading
from resources.node import Battery
from resources.rdma_verdict import Cable, Thunderbolt, verdict_over_cable
from resources.survey import MacFacts, MacLinks, MacMemory, MacPower, ask_facts, ask_links

if TYPE_CHECKING:
    from resources.commands import Command

RECORDED = Path(__file__).parent / "recorded"
ANSWERS = {
    survey.SYSTEM: "sysctl_m5_max.txt",
    survey.IOREG: "ioreg_m5_max.txt",
    survey.DISPLAYS: "displays_m2_max.json",
    survey.METAL: "device_info_m5_max.json",
    survey.VERSION: "sw_vers_26.txt",
    survey.VM_STAT: "vm_stat_16k.txt",
    survey.MEMORY: "memory_sysctl_critical.txt",
    survey.THERMAL: "therm_throttled.txt",
    survey.BATTERY: "batt_laptop.txt",
    survey.SETTINGS: "pmset_laptop.txt",
    survey.IDLE: "hid_idle.txt",
    survey.MACMON: "macmon_0_8.json",
    survey.PORTS: "ports_macbook.txt",
    survey.SERVICES: "services_macbook.txt",
    survey.THUNDERBOLT: "thunderbolt_5_pair.json",
    survey.RDMA_STATUS: "rdma_ctl_enabled.txt",
    survey.RDMA_DEVICES: "ibv_devices.txt",
    survey.RDMA_STATES: "ibv_devinfo.txt",
}
OFTEN = MonitorTimes(memory=0, gpu=0, sensors=0, power=0, wanted=60)


class Mac:
    """Answers as recorded, but for the commands that fail, and counts."""

    def __init__(self, *failing: Command) -> None:
        self.failing = failing
        self.asked: Counter[Command] = Counter()
        self.news = asyncio.Event()

    async def run(self, command: Command) -> str | None:
        await asyncio.sleep(0)
        self.asked[command] += 1
        self.news.set()
        return None if command in self.failing else (RECORDED / ANSWERS[command]).read_text()


async def test_facts_of_a_mac():
    mac = Mac()
    facts = await ask_facts(mac.run)
    assert (facts.system.chip, facts.gpu_cores) == ("Apple M5 Max", 40)
    assert facts.metal.working_set_limit_bytes == 60129542144
    assert survey.DISPLAYS not in mac.asked  # the slow way is for Macs whose ioreg does not tell


async def test_gpu_cores_come_from_elsewhere_if_ioreg_fails():
    assert (await ask_facts(Mac(survey.IOREG).run)).gpu_cores == 30


async def test_a_probe_that_fails_leaves_its_own_fields_unknown():
    facts = await ask_facts(Mac(survey.SYSTEM, survey.METAL).run)
    assert facts == MacFacts(MacSystem(), 40, MetalDevice())
    assert await ask_links(Mac(*ANSWERS).run) == MacLinks()


async def test_links_and_the_verdict_on_rdma():
    links = await ask_links(Mac().run)
    book = links.thunderbolt_of("Apple M5 Max")
    assert (book.is_version_5, book.macos, book.rdma_enabled) == (True, (26, 6, 2), True)
    (cable,) = book.cables
    other_end = Cable(cable.peer_domain_ids[0], (cable.domain_id,), rdma_active=True)
    studio = msgspec.structs.replace(book, cables=(other_end,))
    active = msgspec.structs.replace(book, cables=(msgspec.structs.replace(cable, rdma_active=True),))
    verdict = verdict_over_cable(("Book", active), ("Studio", studio))
    assert verdict is not None
    assert verdict.possible is True
    off = msgspec.structs.replace(studio, rdma_enabled=False)
    verdict = verdict_over_cable(("Book", active), ("Studio", off))
    assert verdict is not None
    assert "RDMA is off on Studio" in verdict.reasons[0]
    assert verdict_over_cable(("Book", active), ("mini", Thunderbolt())) is None  # no cable between them
    assert msgspec.json.decode(msgspec.json.encode(book), type=Thunderbolt) == book


def install(folder: Path, answers: dict[Command, str]) -> None:
    """Programs that print what was recorded, for the words that they are really called with."""
    for command, sample in answers.items():
        program = folder / command.words[0]
        if not program.exists():
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        with program.open("a") as script:
            script.write(f"[ \"$*\" = '{' '.join(command.words[1:])}' ] && exec cat '{RECORDED / sample}'\n")


async def test_the_commands_are_run_for_real(tmp_path, monkeypatch):
    install(tmp_path, {command: sample for command, sample in ANSWERS.items() if command is not survey.METAL})
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    for path in tmp_path.iterdir():
        path.write_text(path.read_text() + "exit 1\n")
    facts, recorded_facts = await ask_facts(), await ask_facts(Mac().run)
    assert (facts.system, facts.gpu_cores) == (recorded_facts.system, recorded_facts.gpu_cores)
    for ask in (survey.ask_memory, survey.ask_gpu, survey.ask_sensors, survey.ask_power, ask_links):
        assert await ask() == await ask(Mac().run)


async def read(mac: Mac, enough) -> Reading:
    monitor = Monitor(mac.run, OFTEN)
    monitor.start()
    try:
        async with asyncio.timeout(30):
            while not enough(monitor.latest()):
                mac.news.clear()
                await mac.news.wait()
    finally:
        await monitor.close()
    return monitor.latest()


async def test_a_reading_of_everything():
    reading = await read(
        Mac(),
        lambda new: (
            new.memory.swap and new.memory.pages and new.gpu.cores and new.power.battery and new.sensors.gpu_load
        ),
    )
    assert reading.memory.pressure == "critical"
    assert reading.memory.pages is not None
    assert reading.gpu.load == 0
    assert reading.sensors.gpu_power_watts == 0.017451683
    assert reading.power == MacPower(True, True, Battery(85, on_mains=False), 0.04158325)


async def test_a_mac_without_macmon_has_all_the_rest():
    mac = Mac(survey.MACMON)
    reading = await read(mac, lambda new: new.memory.pages and new.gpu.cores and mac.asked[survey.MACMON] > 1)
    assert reading.sensors == Sensors()
    assert reading.gpu != Gpu()
    assert reading.memory != MacMemory()


async def test_nothing_is_asked_while_nobody_wants_to_know():
    mac = Mac()
    monitor = Monitor(mac.run, MonitorTimes(0, 0, 0, 0, wanted=-1))
    monitor.start()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not mac.asked
    monitor.latest()  # wanted until a moment ago: still nothing
    for _ in range(20):
        await asyncio.sleep(0)
    assert not mac.asked
    await monitor.close()
