"""RDMA over Thunderbolt: ``rdma_ctl``, ``ibv_devices``, ``ibv_devinfo``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DEVICE = re.compile(r"^\s*(rdma_\w{1,15})\s+([0-9a-fA-F]{16})\s*$", re.MULTILINE)
_BLOCK = re.compile(r"^\s*hca_id:\s*(\S{1,32})\s*$", re.MULTILINE)
_STATE = re.compile(r"\bstate:\s*(PORT_[A-Z_]{1,20})")


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """One device of ``ibv_devices``."""

    name: str
    """``rdma_en2``: the RDMA face of the network device ``en2``."""
    guid: str

    @property
    def network_device(self) -> str:
        """``en2``."""
        return self.name.removeprefix("rdma_")


def rdma_enabled(output: str) -> bool | None:
    """``rdma_ctl status``: ``enabled`` or ``disabled``, alone or at the end of a sentence."""
    words = re.findall(r"\b(?:enabled|disabled)\b", output.lower())
    return words[0] == "enabled" if len(set(words)) == 1 else None


def rdma_devices(output: str) -> tuple[RdmaDevice, ...]:
    """``ibv_devices``: a table of names and GUIDs."""
    return tuple(RdmaDevice(name, guid.lower()) for name, guid in _DEVICE.findall(output))


def rdma_port_active(output: str) -> dict[str, bool]:
    """``ibv_devinfo``: for each device whether its first port says ``PORT_ACTIVE``; devices without a state are out."""
    parts = _BLOCK.split(output)
    states = {}
    for name, block in zip(parts[1::2], parts[2::2], strict=True):
        state = _STATE.search(block)
        if state is not None:
            states[name] = state[1] == "PORT_ACTIVE"
    return states
