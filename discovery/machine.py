"""What this machine is called, and what tells it from a copy of its disk."""

from __future__ import annotations

import logging
import platform
import re
import subprocess
import sys
from pathlib import Path

from discovery.announcement import clean_name

_COMMAND_SECONDS = 2.0
_PLATFORM_UUID = re.compile(r'"IOPlatformUUID"\s*=\s*"([0-9A-Fa-f-]{36})"')
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_MACHINE_ID_FILE = Path("/etc/machine-id")
_log = logging.getLogger(__name__)


def machine_name() -> str:
    """What people call this machine: the Mac's computer name, elsewhere the host name without its domain."""
    name = _output("scutil", "--get", "ComputerName") if sys.platform == "darwin" else ""
    return clean_name(name) or clean_name(platform.node().partition(".")[0]) or "Unnamed"


def hardware_id() -> str:
    """An id that stays with the machine when its disk is copied to another; empty where the machine tells none."""
    if sys.platform == "darwin":
        found = _PLATFORM_UUID.search(_output("ioreg", "-rd1", "-c", "IOPlatformExpertDevice"))
        return found[1].upper() if found else ""
    try:
        text = _MACHINE_ID_FILE.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        _log.debug("%s tells nothing: %s", _MACHINE_ID_FILE, error)
        return ""
    return text if _MACHINE_ID.fullmatch(text) else ""


def _output(*command: str) -> str:
    try:
        asked = subprocess.run(command, capture_output=True, timeout=_COMMAND_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        _log.debug("%s tells nothing: %s", command[0], error)
        return ""
    return asked.stdout.decode(errors="replace")
