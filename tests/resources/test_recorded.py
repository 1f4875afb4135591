"""Every parser of a Mac's commands, on the outputs in ``recorded/``; that folder's README says where each is from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.linux import swap_from_meminfo
from resources.mac.gpu import Gpu, gpu_cores_from_displays, gpu_from_ioreg, metal_device
from resources.mac.macmon import Sensors, sensors_from_macmon
from resources.mac.memory import (
    Swap,
    free_percent_from_memory_pressure,
    pages_from_vm_stat,
    pressure_from_sysctl,
    swap_from_sysctl,
)
from resources.mac.network import (
    interface_from_ifconfig,
    ports_from_networksetup,
    service_enabled,
    services_from_networksetup,
    thunderbolt_bridge,
)
from resources.mac.power import (
    PowerSettings,
    Thermal,
    assertions_from_pmset,
    battery_from_pmset,
    idle_seconds_from_ioreg,
    settings_from_pmset,
    thermal_from_pmset,
)
from resources.mac.rdma import rdma_devices, rdma_enabled, rdma_port_active
from resources.mac.system import CoreKind, macos_version, system_from_sysctl
from resources.mac.thunderbolt import Peer, thunderbolt_ports
from resources.node import Battery

RECORDED = Path(__file__).parent / "recorded"
SAMPLES = {path.name: path.read_text() for path in sorted(RECORDED.iterdir()) if path.suffix in {".txt", ".json"}}
PARSERS = (
    system_from_sysctl, macos_version, gpu_from_ioreg, gpu_cores_from_displays, metal_device, pages_from_vm_stat,
    pressure_from_sysctl, swap_from_sysctl, free_percent_from_memory_pressure, thermal_from_pmset,
    assertions_from_pmset, battery_from_pmset, idle_seconds_from_ioreg, settings_from_pmset, sensors_from_macmon,
    ports_from_networksetup,
    services_from_networksetup, service_enabled, interface_from_ifconfig, thunderbolt_ports, rdma_enabled,
    rdma_devices, rdma_port_active, swap_from_meminfo,
)  # fmt: skip
GIB = 1 << 30


def test_there_are_many_and_each_names_its_source():
    assert len(SAMPLES) >= 40
    rows = re.findall(r"^\| `(.+?)` \| (\S.+) \|$", (RECORDED / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(SAMPLES)


@pytest.mark.parametrize(
    ("sample", "chip", "gib", "model", "cores", "wired_gib"),
    [
        ("m5_max", "Apple M5 Max", 128, "Mac17,7", (CoreKind("Super", 6), CoreKind("Performance", 12)), None),
        ("m1", "Apple M1", 8, "MacBookAir10,1", (CoreKind("Performance", 4), CoreKind("Efficiency", 4)), None),
        ("m3_ultra", "Apple M3 Ultra", 512, "Mac15,14", (CoreKind("Performance", 24), CoreKind("Efficiency", 8)), 480),
        ("m6", "Apple M6", 24, "Mac18,1", (CoreKind("Super", 4), CoreKind("Performance", 6)), None),
        ("old_macos", "Apple M2 Pro", 32, "Mac14,9", (), None),
    ],
)
def test_sysctl_tells_what_a_mac_is(sample, chip, gib, model, cores, wired_gib):
    system = system_from_sysctl(SAMPLES[f"sysctl_{sample}.txt"])
    assert (system.chip, system.memory_bytes, system.model, system.cores) == (chip, gib * GIB, model, cores)
    assert system.wired_limit_bytes == (wired_gib * GIB if wired_gib else None)


@pytest.mark.parametrize(("sample", "version"), [("26", (26, 6, 2)), ("long", (26, 6, 2)), ("14", (14, 7))])
def test_sw_vers_tells_the_version(sample, version):
    assert macos_version(SAMPLES[f"sw_vers_{sample}.txt"]) == version


@pytest.mark.parametrize(
    ("sample", "gpu"),
    [
        ("m3_pro", Gpu("Apple M3 Pro", 18, 0.95, 1234)),
        ("m5_max", Gpu("Apple M5 Max", 40, 0.0, 812482560)),
        ("no_statistics", Gpu("Apple M1", 7)),
    ],
)
def test_ioreg_tells_cores_and_load_of_the_gpu(sample, gpu):
    assert gpu_from_ioreg(SAMPLES[f"ioreg_{sample}.txt"]) == gpu


def test_displays_tell_the_gpu_cores_as_a_text():
    assert gpu_cores_from_displays(SAMPLES["displays_m2_max.json"]) == 30
    assert gpu_cores_from_displays(SAMPLES["displays_no_cores.json"]) is None


def test_mlx_tells_the_limit_of_the_gpu_where_there_is_metal():
    metal = metal_device(SAMPLES["device_info_m5_max.json"])
    assert (metal.name, metal.working_set_limit_bytes, metal.memory_bytes) == ("Apple M5 Max", 56 * GIB, 64 * GIB)
    without = metal_device(SAMPLES["device_info_cpu.json"])
    assert (without.name, without.working_set_limit_bytes) == ("CPU", None)


@pytest.mark.parametrize(("sample", "page"), [("16k", 16384), ("4k", 4096)])
def test_vm_stat_counts_pages_of_the_size_that_it_names(sample, page):
    pages = pages_from_vm_stat(SAMPLES[f"vm_stat_{sample}.txt"])
    assert pages is not None
    assert (pages.free_bytes, pages.wired_bytes) == (100000 * page, 50000 * page)
    assert pages.used_bytes == (400000 - 10000 + 50000 + 20000) * page


def test_half_a_vm_stat_is_none():
    whole = SAMPLES["vm_stat_16k.txt"]
    assert pages_from_vm_stat(whole[: whole.index("Pages occupied")]) is None


@pytest.mark.parametrize(
    ("sample", "pressure", "swap"),
    [
        ("normal", "normal", Swap(0, 0)),
        ("critical", "critical", Swap(23552 << 20, 2239256 * (1 << 20) // 100)),
        ("comma", "warning", Swap(2048 << 20, 102450 * (1 << 20) // 100)),
    ],
)
def test_sysctl_tells_pressure_and_swap(sample, pressure, swap):
    output = SAMPLES[f"memory_sysctl_{sample}.txt"]
    assert (pressure_from_sysctl(output), swap_from_sysctl(output)) == (pressure, swap)


def test_pressure_without_its_name():
    assert [pressure_from_sysctl(level) for level in ("1\n", "2\n", "4\n", "3\n")] == [
        "normal", "warning", "critical", None,
    ]  # fmt: skip


def test_memory_pressure_tells_a_percentage():
    assert free_percent_from_memory_pressure(SAMPLES["memory_pressure_q.txt"]) == 40


@pytest.mark.parametrize(
    ("sample", "thermal"),
    [
        ("apple_silicon", Thermal(warning=False)),
        ("throttled", Thermal(warning=True, speed_limit_percent=62)),
        ("full_speed", Thermal(warning=False, speed_limit_percent=100)),
    ],
)
def test_pmset_tells_heat(sample, thermal):
    assert thermal_from_pmset(SAMPLES[f"therm_{sample}.txt"]) == thermal


def test_pmset_tells_who_keeps_a_mac_awake():
    first, second = assertions_from_pmset(SAMPLES["assertions_caffeinate.txt"])
    assert (first.pid, first.process, first.kind) == (48824, "caffeinate", "PreventUserIdleSystemSleep")
    assert first.name == "caffeinate command-line tool"
    assert second.process == "powerd"


@pytest.mark.parametrize(
    ("sample", "battery"),
    [
        ("laptop", Battery(percent=85, on_mains=False)),
        ("charging", Battery(percent=7, on_mains=True)),
        ("desktop", None),
    ],
)
def test_pmset_tells_the_battery(sample, battery):
    assert battery_from_pmset(SAMPLES[f"batt_{sample}.txt"]) == battery


@pytest.mark.parametrize(
    ("sample", "power"),
    [("laptop", PowerSettings(True, 1, False, True)), ("desktop", PowerSettings(False, 0, True, True))],
)
def test_pmset_tells_the_settings(sample, power):
    assert settings_from_pmset(SAMPLES[f"pmset_{sample}.txt"]) == power


def test_ioreg_tells_how_long_nobody_has_touched_the_mac():
    assert idle_seconds_from_ioreg(SAMPLES["hid_idle.txt"]) == pytest.approx(0.04158325)
    assert idle_seconds_from_ioreg(SAMPLES["ioreg_m5_max.txt"]) is None


@pytest.mark.parametrize(
    ("sample", "sensors"),
    [
        ("0_8", Sensors(43.73614, 36.95167, 0.20486385, 0.017451683, 5.876533, 0.09)),
        ("0_8_desktop", Sensors(51.5, 48.25, 3.5, 21.25, None, 0.97)),
        ("0_7", Sensors(48.5, 46.13, 0.5, 0.489, 5.8, 0.0765)),
    ],
)
def test_macmon_tells_power_and_temperature_by_old_and_new_names(sample, sensors):
    assert sensors_from_macmon(SAMPLES[f"macmon_{sample}.json"]) == sensors


def test_a_sensor_that_reads_zero_degrees_is_unknown():
    assert sensors_from_macmon('{"temp":{"gpu_temp_avg":0}}') == Sensors()


@pytest.mark.parametrize(
    ("sample", "wifi", "thunderbolt"),
    [
        ("macbook", ("Wi-Fi", "en0"), {1: "en1", 2: "en2", 3: "en3"}),
        ("studio", ("Wi-Fi", "en1"), {1: "en2", 2: "en3", 3: "en4", 4: "en5", 5: "en6", 6: "en7"}),
        ("german", ("WLAN", "en0"), {1: "en1"}),
    ],
)
def test_networksetup_tells_the_ports(sample, wifi, thunderbolt):
    ports = ports_from_networksetup(SAMPLES[f"ports_{sample}.txt"])
    assert wifi in [(port.name, port.device) for port in ports]
    found = {port.thunderbolt_port: port.device for port in ports if port.thunderbolt_port is not None}
    assert found == thunderbolt


def test_networksetup_tells_the_services_and_which_are_off():
    macbook = services_from_networksetup(SAMPLES["services_macbook.txt"])
    assert [(service.device, service.enabled) for service in macbook] == [
        ("en5", True), ("en0", True), ("bridge0", True),
    ]  # fmt: skip
    bridge = {service.device: service for service in services_from_networksetup(SAMPLES["services_disabled.txt"])}
    assert (bridge["bridge0"].name, bridge["bridge0"].enabled, bridge["en0"].enabled) == (
        "Pont Thunderbolt", False, True,
    )  # fmt: skip
    assert [service_enabled(answer) for answer in ("Enabled\n", "Disabled", "** Error")] == [True, False, None]


@pytest.mark.parametrize(
    ("sample", "bits_per_second"),
    [("10g", 10**10), ("2500", 25 * 10**8), ("2_5g", 25 * 10**8), ("1000", 10**9), ("wifi", None), ("bridge", None)],
)
def test_ifconfig_tells_the_speed(sample, bits_per_second):
    interface = interface_from_ifconfig(SAMPLES[f"ifconfig_{sample}.txt"])
    assert interface.speed_bits_per_second == bits_per_second
    assert interface.active is (sample != "bridge")
    assert interface.mtu_bytes == 1500
    assert len(interface.addresses) == 1


def test_the_thunderbolt_bridge_is_found_by_its_members_in_any_language():
    bridge = interface_from_ifconfig(SAMPLES["ifconfig_bridge.txt"])
    assert bridge.members == ("en1", "en2")
    ports = ports_from_networksetup(SAMPLES["ports_german.txt"])
    wifi = interface_from_ifconfig(SAMPLES["ifconfig_wifi.txt"])
    assert thunderbolt_bridge(ports, {"bridge0": wifi, "bridge7": bridge}) == "bridge7"


def test_two_macs_on_a_cable_name_each_other():
    connected, idle = thunderbolt_ports(SAMPLES["thunderbolt_5_pair.json"])
    peer_id = "28CA4C30-0000-4000-8000-000000000002"
    assert connected.peers == (Peer("Mac Studio", "Mac15,14", peer_id),)
    assert (connected.receptacle, connected.connected, connected.speed_gigabits_per_second) == (1, True, 80)
    assert (idle.receptacle, idle.connected, idle.speed_gigabits_per_second, idle.peers) == (2, False, 120, ())
    assert connected.is_thunderbolt_5
    assert idle.is_thunderbolt_5


def test_a_mac_behind_hubs_is_found_and_a_drive_is_none():
    (port,) = thunderbolt_ports(SAMPLES["thunderbolt_5_hub.json"])
    assert [(peer.name, peer.behind_hub) for peer in port.peers] == [("Mac Studio", True)]
    (drive,) = thunderbolt_ports(SAMPLES["thunderbolt_drive.json"])
    assert (drive.connected, drive.peers) == (True, ())


def test_a_slow_link_does_not_tell_which_end_is_slow():
    connected, idle = thunderbolt_ports(SAMPLES["thunderbolt_4_pair.json"])
    assert (connected.is_thunderbolt_5, idle.is_thunderbolt_5) == (None, False)


def test_speed_in_german():
    (port,) = thunderbolt_ports(SAMPLES["thunderbolt_german.json"])
    assert port.speed_gigabits_per_second == 120


def test_rdma_tools():
    assert rdma_enabled(SAMPLES["rdma_ctl_enabled.txt"]) is True
    assert rdma_enabled(SAMPLES["rdma_ctl_disabled.txt"]) is False
    assert [(device.network_device, device.guid) for device in rdma_devices(SAMPLES["ibv_devices.txt"])] == [
        ("en2", "e0c5797d9c8fac05"), ("en3", "e0c5797d9c8fac06"),
    ]  # fmt: skip
    assert rdma_port_active(SAMPLES["ibv_devinfo.txt"]) == {"rdma_en2": True, "rdma_en3": False}


def test_meminfo_tells_swap():
    assert swap_from_meminfo("SwapTotal:   1024 kB\nSwapFree:    24 kB\n") == Swap(1 << 20, 1000 << 10)
    assert swap_from_meminfo("SwapTotal:   24 kB\nSwapFree:    1024 kB\n") is None


def empty_answers() -> list[object]:
    return [parse("") for parse in PARSERS]


def test_nothing_tells_nothing():
    assert empty_answers() == [parse("\0 вообще другой текст") for parse in PARSERS]


ODD_NUMBERS = ("", "-1", "0", "9" * 18, "9" * 30, "9" * 5000, "٣", "²", "NaN", "1e999", "null", "[]", "{}", '"x"')


@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_numbers_that_no_mac_prints_make_no_parser_fail(number):
    for text in SAMPLES.values():
        odd = re.sub(r"[0-9]+", lambda _: number, text)
        for parse in PARSERS:
            repr(parse(odd))


any_sample = st.sampled_from(sorted(SAMPLES)).map(SAMPLES.__getitem__)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A recorded output that was cut, shuffled by lines, mixed with another, or has other numbers in it."""
    text = draw(any_sample)
    kind = draw(st.sampled_from(["cut", "shuffled", "foreign", "numbers", "repeated"]))
    if kind == "cut":
        start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        return text[start:end]
    if kind == "shuffled":
        return "\n".join(draw(st.permutations(text.splitlines()[:40])))
    if kind == "foreign":
        place = draw(st.integers(0, len(text)))
        return text[:place] + draw(st.text() | any_sample) + text[place:]
    if kind == "numbers":
        other = draw(st.sampled_from(ODD_NUMBERS))
        return re.sub(r"[0-9]+", lambda _: other, text)
    return text * 2


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged() | st.text())
def test_no_text_makes_a_parser_fail(text):
    for parse in PARSERS:
        repr(parse(text))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"SPThunderboltDataType":' * 5000, "\ud800", '{"a":' + "9" * 5000 + "}"]
)
def test_json_that_is_meant_to_hurt_is_unknown(text):
    assert empty_answers() == [parse(text) for parse in PARSERS]
