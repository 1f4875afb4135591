"""Power and temperature by macmon, an open program that some people have installed; it needs no sudo.

Up to 0.7 the GPU's load was the second number of ``gpu_usage``; 0.8.0 named it ``gpu_scaled_ratio`` and added
``gpu_active_ratio``, 0.8.1 kept the old name beside them. Source: readme and changelog of vladkens/macmon.
"""

from __future__ import annotations

from dataclasses import dataclass

from resources.mac.reading import Json, as_json, number


@dataclass(frozen=True, slots=True)
class Sensors:
    """One sample; None for what it does not hold or what cannot be."""

    cpu_temperature_celsius: float | None = None
    gpu_temperature_celsius: float | None = None
    cpu_power_watts: float | None = None
    gpu_power_watts: float | None = None
    system_power_watts: float | None = None
    gpu_load: float | None = None
    """0 to 1."""


def sensors_from_macmon(output: str) -> Sensors:
    """The last whole line of ``macmon pipe``: one JSON object for each sample."""
    samples = [as_json(line) for line in output.splitlines()[-8:]]
    sample = next((sample for sample in reversed(samples) if isinstance(sample, dict)), {})
    return Sensors(
        cpu_temperature_celsius=_within(sample, 1, 150, ("temp", "cpu_temp_avg")),
        gpu_temperature_celsius=_within(sample, 1, 150, ("temp", "gpu_temp_avg")),
        cpu_power_watts=_within(sample, 0, 2000, ("cpu_power",)),
        gpu_power_watts=_within(sample, 0, 2000, ("gpu_power",)),
        system_power_watts=_within(sample, 0, 2000, ("sys_power",)),
        gpu_load=_within(sample, 0, 1, ("gpu_active_ratio",), ("gpu_scaled_ratio",), ("gpu_usage", "1")),
    )


def _within(sample: dict[str, Json], least: float, most: float, *paths: tuple[str, ...]) -> float | None:
    for path in paths:
        value = number(_at(sample, path))
        if value is not None and least <= value <= most:
            return value
    return None


def _at(sample: Json, path: tuple[str, ...]) -> Json:
    """The value at a way of keys; digits index a list, as in ``"gpu_usage": [461, 0.09]``."""
    for key in path:
        if isinstance(sample, dict):
            sample = sample.get(key)
        elif isinstance(sample, list) and key.isdecimal() and int(key) < len(sample):
            sample = sample[int(key)]
        else:
            return None
    return sample
