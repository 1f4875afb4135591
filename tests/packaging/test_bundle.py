"""What macOS reads of the app before it starts it, and the workflow that builds it: as far as Linux can tell."""

import plistlib
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import bundle_icon
import bundle_plists
import pytest
from PySide6.QtGui import QColor, QImage

from discovery.announcement import SERVICE_TYPE

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "mac.yml"


def test_packaging_is_no_package():
    assert not list((ROOT / "packaging").rglob("__init__.py"))  # it would hide the one of that name on PyPI


def test_info_plist_says_what_macos_wants_to_know():
    info = plistlib.loads(plistlib.dumps(bundle_plists.info_plist("Pomona")))
    assert info["CFBundleIdentifier"] == "app.pomona.Pomona"
    assert info["CFBundleExecutable"] == "Pomona"
    assert info["CFBundlePackageType"] == "APPL"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert info["CFBundleShortVersionString"] == info["CFBundleVersion"] == project["version"]
    assert info["LSMinimumSystemVersion"] == "14.0"
    assert info["LSApplicationCategoryType"] == "public.app-category.developer-tools"
    assert info["NSHighResolutionCapable"] is True
    assert info["NSRequiresAquaSystemAppearance"] is False
    assert info["NSBonjourServices"] == ["_pomona._tcp"] == [SERVICE_TYPE.removesuffix(".local.")]
    assert "other Macs" in info["NSLocalNetworkUsageDescription"]


def test_the_runtime_is_hardened_but_qt_can_be_replaced(tmp_path):
    path = tmp_path / "entitlements.plist"
    subprocess.run([sys.executable, bundle_plists.__file__, path], check=True)
    assert plistlib.loads(path.read_bytes()) == {"com.apple.security.cs.disable-library-validation": True}


@pytest.fixture(scope="module")
def icns(qapp, tmp_path_factory):
    path = tmp_path_factory.mktemp("icon") / "Pomona.icns"
    bundle_icon.write_icns(path)
    return path.read_bytes()


def test_the_icon_has_every_size(icns):
    """Read by the format itself: a magic word and a length, then entries of the same kind."""
    magic, length = struct.unpack(">4sI", icns[:8])
    assert (magic, length) == (b"icns", len(icns))
    found, offset = {}, 8
    while offset < length:
        kind, size = struct.unpack(">4sI", icns[offset : offset + 8])
        found[kind.decode()] = QImage.fromData(icns[offset + 8 : offset + size])
        offset += size
    assert {kind: image.width() for kind, image in found.items()} == bundle_icon.SIZES
    large = found["ic10"]
    assert large.height() == 1024
    assert large.pixelColor(2, 2).alpha() == 0  # round corners
    bands = [large.pixelColor(512, y) for y in (430, 575, 720)]
    assert len({QColor(band).hue() for band in bands}) == 3


def test_the_workflow_is_one():
    check = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        [check, "--builtin-schema", "vendor.github-workflows", WORKFLOW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_workflow_calls_what_is_there():
    words = WORKFLOW.read_text()
    targets = set(re.findall(r"run: make ([\w-]+)", words))
    assert {"setup", "test", "app", "app-mac"} == targets
    rules = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", rules, re.MULTILINE) for target in targets)
    for script in re.findall(r"run: sh (\S+)", words):
        subprocess.run(["sh", "-n", ROOT / script], check=True)


def test_the_spec_is_python():
    compile((ROOT / "packaging" / "pomona.spec").read_text(), "pomona.spec", "exec")
