"""The property lists of the app: what macOS reads before it starts Pomona. Pure; run it to write the entitlements."""

from __future__ import annotations

import plistlib
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # PyInstaller and the builder run this from anywhere
    sys.path.append(str(ROOT))

from discovery.announcement import SERVICE_TYPE  # noqa: E402  only now can it be found
from runtime.agent.login_item import BUNDLE_ID  # noqa: E402

__all__ = ["BUNDLE_ID", "OLDEST_MACOS", "entitlements", "info_plist", "version"]

OLDEST_MACOS = "14.0"
"""That of the PySide6 and MLX wheels."""


def version() -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def info_plist(executable: str) -> dict[str, Any]:
    """Info.plist of a bundle whose program is ``Contents/MacOS/EXECUTABLE``."""
    return {
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundlePackageType": "APPL",
        "CFBundleIdentifier": BUNDLE_ID,
        "CFBundleName": "Pomona",
        "CFBundleDisplayName": "Pomona",
        "CFBundleExecutable": executable,
        "CFBundleIconFile": "Pomona.icns",
        "CFBundleShortVersionString": version(),
        "CFBundleVersion": version(),
        "CFBundleDevelopmentRegion": "en",
        "LSApplicationCategoryType": "public.app-category.developer-tools",
        "LSMinimumSystemVersion": OLDEST_MACOS,
        "LSArchitecturePriority": ["arm64"],
        "NSHumanReadableCopyright": "Apache License 2.0",
        "NSPrincipalClass": "NSApplication",
        "NSHighResolutionCapable": True,
        "NSRequiresAquaSystemAppearance": False,  # dark mode
        "NSQuitAlwaysKeepsWindows": False,  # macOS keeps no saved state of ours
        # Without these two, macOS 15 and newer refuse the local network without asking.
        "NSLocalNetworkUsageDescription": (
            "Pomona finds your other Macs, pairs with them, and runs a language model over them together."
        ),
        "NSBonjourServices": [SERVICE_TYPE.removesuffix(".local.")],
    }


def entitlements() -> dict[str, Any]:
    """For the hardened runtime: none but that the person may replace Qt's libraries, as its licence (LGPL) wants."""
    return {"com.apple.security.cs.disable-library-validation": True}


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(plistlib.dumps(entitlements()))
