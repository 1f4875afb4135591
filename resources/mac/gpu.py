"""The GPU of a Mac: its cores, its load, and how much memory Metal lets it use."""

from __future__ import annotations

import re
from dataclasses import dataclass

from resources.mac.reading import as_json, number, objects, string, whole, whole_number
from resources.parse import tidy

_MAX_CORES = 1024
_STATISTICS = re.compile(r'"PerformanceStatistics"\s*=\s*\{([^{}]*)')


@dataclass(frozen=True, slots=True)
class Gpu:
    """What ``ioreg`` says of the accelerator."""

    chip: str | None = None
    cores: int | None = None
    load: float | None = None
    """Share of the time that the GPU was busy, 0 to 1."""
    in_use_bytes: int | None = None
    """System memory that the GPU uses now, of all programs."""


@dataclass(frozen=True, slots=True)
class MetalDevice:
    """What ``mx.device_info()`` says; on a machine without Metal nothing but names."""

    name: str | None = None
    architecture: str | None = None
    working_set_limit_bytes: int | None = None
    """``max_recommended_working_set_size``. Its share of the memory differs from Mac to Mac: 78% to 91% were seen."""
    memory_bytes: int | None = None


def gpu_from_ioreg(output: str) -> Gpu:
    """``ioreg -r -c AGXAccelerator -l``: ``"key" = value`` lines, the statistics in braces on one line."""
    statistics = _STATISTICS.search(output)
    inside = statistics[1] if statistics is not None else ""
    percent = whole(r'"Device Utilization %"\s*=\s*([0-9]{1,3})\b', inside)
    model = re.search(r'"model"\s*=\s*<?"([^"\n]*)"', output)
    return Gpu(
        chip=tidy(model[1]) if model is not None else None,
        cores=_core_count(whole(r'"gpu-core-count"\s*=\s*([0-9]+)', output)),
        load=percent / 100 if percent is not None and percent <= 100 else None,
        in_use_bytes=whole(r'"In use system memory"\s*=\s*([0-9]+)\b', inside),
    )


def gpu_cores_from_displays(output: str) -> int | None:
    """``system_profiler SPDisplaysDataType -json``, where ``sppci_cores`` is a text."""
    decoded = as_json(output)
    if not isinstance(decoded, dict):
        return None
    for display in objects(decoded.get("SPDisplaysDataType")):
        cores = display.get("sppci_cores")
        count = _core_count(whole_number(str(cores)) if isinstance(cores, str | int) else None)
        if count is not None:
            return count
    return None


def metal_device(output: str) -> MetalDevice:
    """``mx.device_info()`` as JSON."""
    decoded = as_json(output)
    if not isinstance(decoded, dict):
        return MetalDevice()
    return MetalDevice(
        name=tidy(string(decoded.get("device_name")) or ""),
        architecture=tidy(string(decoded.get("architecture")) or ""),
        working_set_limit_bytes=_bytes(number(decoded.get("max_recommended_working_set_size"))),
        memory_bytes=_bytes(number(decoded.get("memory_size"))),
    )


def _core_count(count: int | None) -> int | None:
    return count if count is not None and 0 < count <= _MAX_CORES else None


def _bytes(value: float | None) -> int | None:
    return int(value) if value is not None and 0 < value < 1 << 53 else None
