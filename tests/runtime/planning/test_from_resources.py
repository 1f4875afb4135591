"""What a plan counts with for a node: what was measured there, else its maker's figure, else a usual one."""

from __future__ import annotations

import msgspec

from resources.node import Calibration, NodeResources, Versions
from runtime.planning.from_resources import node_speed
from runtime.planning.places import UNKNOWN_SPEED

SERVER = NodeResources(
    "a" * 64, "Server", "Xeon", 16 * 10**9, 10**10, virtual=False, versions=Versions("", "", "", "", "")
)
CALIBRATION = Calibration({"4-bit": 700_000_000}, 3e9, 1e-3)


def test_what_was_measured_counts_most():
    node = msgspec.structs.replace(SERVER, calibration=CALIBRATION, memory_bandwidth_bytes_per_second=10**11)
    speed = node_speed(node, "4-bit")
    assert (speed.bytes_per_second, speed.source) == (7e8, "calibrated")
    assert speed.cache_rate == 7e8
    with_cache = msgspec.structs.replace(CALIBRATION, cache_bytes_per_second=2_000_000_000)
    assert node_speed(msgspec.structs.replace(node, calibration=with_cache), "4-bit").cache_rate == 2e9


def test_a_kind_of_weights_that_was_not_measured_goes_by_the_makers_figure():
    node = msgspec.structs.replace(SERVER, calibration=CALIBRATION, memory_bandwidth_bytes_per_second=10**11)
    assert node_speed(node, "bf16").bytes_per_second == 8e10


def test_an_unknown_chip_with_a_gpu_counts_as_a_plain_one():
    assert node_speed(msgspec.structs.replace(SERVER, gpu_cores=10), "4-bit") == UNKNOWN_SPEED


def test_without_a_gpu_fewer_bits_are_slower():
    rates = [node_speed(SERVER, kind).bytes_per_second for kind in ("4-bit", "8-bit", "bf16", "float32")]
    assert rates == sorted(rates)
    assert rates[-1] < UNKNOWN_SPEED.bytes_per_second / 10
