"""The description of one node that the rest of Pomona plans with and shows."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
MemoryPressure = Literal["normal", "warning", "critical"]
"""As macOS grades it: at ``warning`` it compresses and swaps, at ``critical`` it ends programs."""
BandwidthSource = Literal["table", "measured", "given"]


class Versions(msgspec.Struct, frozen=True):
    """What has to agree between nodes before they may share a model."""

    pomona: str
    mlx: str
    mlx_lm: str
    python: str
    system: str
    """Operating system and its version, as people say it: ``macOS 26.1``, ``Debian GNU/Linux 12``."""


class Battery(msgspec.Struct, frozen=True):
    """How full it is and whether it is in use."""

    percent: Percent
    on_mains: bool


class Calibration(msgspec.Struct, frozen=True):
    """What `pomona calibrate` measured on a node, with the version of MLX that the node still has."""

    weight_bytes_per_second: dict[str, Annotated[int, msgspec.Meta(gt=0)]]
    """Achieved while one token passes matrices, by how their weights are stored: ``4-bit``, ``8-bit``, ``bf16``,
    ``float32``."""
    flops_per_second: Annotated[float, msgspec.Meta(gt=0)]
    """Achieved while a prompt's chunk passes them."""
    layer_overhead_seconds: Annotated[float, msgspec.Meta(ge=0, le=1)]
    """What a layer takes beside reading its weights: starting its operations."""
    cache_bytes_per_second: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Achieved by attention over a long context; None where it was measured before that was asked for."""


class MemoryParts(msgspec.Struct, frozen=True):
    """Where a node's memory is now; the parts add up to its total."""

    others_bytes: Count
    """What other programs and the system have."""
    weight_bytes: Count
    """What Pomona's workers hold for weights."""
    kv_bytes: Count
    """In their caches."""
    overhead_bytes: Count
    """The rest of the workers' physical footprint: their programs and what they compute with."""
    free_bytes: Count

    @property
    def ours_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.overhead_bytes


class LastSleep(msgspec.Struct, frozen=True):
    """When a node slept last while its agent ran."""

    began_at: float
    """Seconds since 1970 by its own clock, a second more or less."""
    seconds: Annotated[float, msgspec.Meta(ge=0)]


class NodeResources(msgspec.Struct, frozen=True):
    """One snapshot of a node. None is unknown, or not to be had on that machine."""

    node_id: str
    name: str
    chip: str
    memory_total_bytes: int
    """Physical memory, or the budget of a virtual node."""
    memory_available_bytes: int
    """What one more model may take now without pushing other programs out, and within every limit."""
    virtual: bool
    """True for a second agent on the same machine, with a budget of its own."""
    versions: Versions
    cpu_cores: Count | None = None
    gpu_cores: Count | None = None
    memory_bandwidth_bytes_per_second: Count | None = None
    memory_bandwidth_source: BandwidthSource | None = None
    """Apple's specification (70% to 90% of it is reached), what was reached here, or what a virtual node was given."""
    gpu_memory_limit_bytes: Count | None = None
    """What Metal lets the GPU use before it pages."""
    memory: MemoryParts | None = None
    memory_cap_bytes: Count | None = None
    """What Pomona may use at most."""
    memory_cap_is_chosen: bool = False
    """A person has said so; otherwise it follows from the total, and from whether someone sits there."""
    someone_sits_here: bool | None = None
    """Whether its keyboard or mouse was used within the last hours."""
    memory_pressure: MemoryPressure | None = None
    swap_total_bytes: Count | None = None
    swap_used_bytes: Count | None = None
    disk_total_bytes: Count | None = None
    disk_free_bytes: Count | None = None
    """Where models are kept, rounded down to 64 MiB."""
    cpu_load: Share | None = None
    """Of all cores together."""
    gpu_load: Share | None = None
    gpu_power_watts: float | None = None
    gpu_temperature_celsius: float | None = None
    system_power_watts: float | None = None
    thermal_warning: bool | None = None
    """True when the machine slows itself down because it is too warm."""
    low_power_mode: bool | None = None
    battery: Battery | None = None
    calibration: Calibration | None = None
    last_sleep: LastSleep | None = None
