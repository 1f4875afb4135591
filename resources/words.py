"""What a node has, in words for a person; what is unknown is left out. Pure.

Macs show memory in GB and mean 2**30 bytes; so does this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.sleep import slept_words

if TYPE_CHECKING:
    from resources.node import NodeResources

_GIB = 1 << 30
_GB = 10**9


def describe(node: NodeResources) -> str:
    """All of it in one line."""
    return f"{node.name}: {'; '.join(facts(node))}"


def facts(node: NodeResources) -> list[str]:
    """A phrase for each subject, the most wanted first."""
    phrases = [chip_words(node), memory_words(node), *load_words(node)]
    if node.disk_free_bytes is not None:
        phrases.append(f"disk {node.disk_free_bytes / _GIB:.0f} GB free")
    phrases += warnings(node)
    versions = node.versions
    phrases.append(f"{versions.system}, pomona {versions.pomona}, mlx {versions.mlx}, mlx-lm {versions.mlx_lm}")
    return phrases


def chip_words(node: NodeResources) -> str:
    """The chip with its GPU cores and the speed of its memory."""
    words = node.chip
    if node.gpu_cores is not None:
        words += f", {node.gpu_cores} GPU cores"
    if node.memory_bandwidth_bytes_per_second is not None:
        words += f", {node.memory_bandwidth_bytes_per_second / _GB:.0f} GB/s ({node.memory_bandwidth_source})"
    return words


def memory_words(node: NodeResources) -> str:
    """What a model may take now, and where the rest is."""
    words = f"{_gib(node.memory_available_bytes)} of {_gib(node.memory_total_bytes)} GB free for a model"
    details = []
    if (parts := node.memory) is not None:
        details.append(f"others have {_gib(parts.others_bytes)}")
        if parts.ours_bytes:
            details.append(
                f"models {_gib(parts.ours_bytes)}: weights {_gib(parts.weight_bytes)}, caches {_gib(parts.kv_bytes)}"
            )
    if node.gpu_memory_limit_bytes is not None:
        details.append(f"the GPU may use {_gib(node.gpu_memory_limit_bytes)}")
    if node.memory_cap_bytes is not None and node.memory_cap_bytes < node.memory_total_bytes:
        chosen = "" if node.memory_cap_is_chosen else ", as usual"
        details.append(f"Pomona {_gib(node.memory_cap_bytes)} at most{chosen}")
    return f"{words} ({'; '.join(details)})" if details else words


def load_words(node: NodeResources) -> list[str]:
    """How busy it is, and what power and heat that makes."""
    loads = (("GPU", node.gpu_load), ("CPU", node.cpu_load))
    words = [f"{what} {load:.0%} busy" for what, load in loads if load is not None]
    if node.system_power_watts is not None:
        words.append(f"{node.system_power_watts:.0f} W")
    elif node.gpu_power_watts is not None:
        words.append(f"GPU {node.gpu_power_watts:.0f} W")
    if node.gpu_temperature_celsius is not None:
        words.append(f"GPU {node.gpu_temperature_celsius:.0f} °C")
    return words


def warnings(node: NodeResources) -> list[str]:
    """What makes it slower now, or made it vanish."""
    words = []
    if node.battery is not None and not node.battery.on_mains:
        words.append(f"battery {node.battery.percent}%")
    if node.thermal_warning:
        words.append("too warm")
    if node.low_power_mode:
        words.append("Low Power Mode")
    if node.memory_pressure in {"warning", "critical"}:
        words.append(f"memory pressure {node.memory_pressure}")
    if node.last_sleep is not None:
        words.append(slept_words(node.last_sleep))
    return words


def _gib(byte_count: int) -> str:
    return f"{byte_count / _GIB:.1f}"
