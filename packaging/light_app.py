"""Builds the light app for Apple silicon, on any machine: dist/light/Pomona.app, and the same as a .zip.

    make app-mac

In it are a launcher (``mac/launcher.c``), uv, Pomona's own wheel and the lock; Python and the packages come at the
first run (``mac/first_setup.py``). It is signed ad hoc here; on a Mac, sign it anew with a Developer ID.

:func:`assemble` puts the parts together and is what the tests call with parts for this machine; :func:`main` makes the
parts for a Mac.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import plistlib
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import bundle_icon
import bundle_plists

ROOT = Path(__file__).parents[1]
MAC = Path(__file__).parent / "mac"
PYTHON_VERSION = "3.12"
"""The one that uv fetches at the first run."""
UNPACKED_BYTES = 815_000_000
"""Of all packages in the lock, measured with its state of November 2026; the first run's bar is drawn by it."""
WHAT_IT_FETCHES = (
    "Pomona is built on Python, Qt, MLX and others, which it fetches once: about 350 MB from python-build-standalone "
    "(GitHub) and PyPI. They go into Pomona's folder in your Library (1 GB) and change nothing else."
)
_TARGET = f"aarch64-macos.{bundle_plists.OLDEST_MACOS}"
_MOMENT = (2026, 1, 1, 0, 0, 0)
"""Of every file in the .zip, so that the same parts make the same archive."""


@dataclass(frozen=True)
class Parts:
    """Files that go into the bundle."""

    launcher: Path
    uv: Path
    wheel: Path
    lock: Path
    icon: Path
    python_version: str = PYTHON_VERSION

    @property
    def build(self) -> str:
        """Names the environment of this very app: another wheel or lock is another build."""
        digest = hashlib.sha256(self.python_version.encode())
        for path in (self.wheel, self.lock):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


def assemble(parts: Parts, bundle: Path) -> None:
    """Write the bundle, unsigned. Whatever was at ``bundle`` goes."""
    shutil.rmtree(bundle, ignore_errors=True)
    contents = bundle / "Contents"
    resources = contents / "Resources"
    for folder in ("MacOS", "Helpers", "Resources"):
        (contents / folder).mkdir(parents=True)
    _copy(parts.launcher, contents / "MacOS" / "Pomona", 0o755)
    _copy(parts.uv, contents / "Helpers" / "uv", 0o755)
    _copy(parts.wheel, resources / parts.wheel.name, 0o644)
    _copy(parts.lock, resources / "requirements.txt", 0o644)
    _copy(parts.icon, resources / "Pomona.icns", 0o644)
    _copy(MAC / "first_setup.py", resources / "first_setup.py", 0o644)
    _copy(ROOT / "LICENSE", resources / "LICENSE", 0o644)
    lines = {"build": parts.build, "python-version": parts.python_version, "what-it-fetches": WHAT_IT_FETCHES}
    for name, line in lines.items():
        (resources / name).write_text(f"{line}\n", encoding="utf-8")
    (resources / "sizes.json").write_text(json.dumps({"unpacked_bytes": UNPACKED_BYTES}))
    (contents / "Info.plist").write_bytes(plistlib.dumps(bundle_plists.info_plist("Pomona")))
    (contents / "PkgInfo").write_text("APPL????")


def pack(bundle: Path, archive: Path) -> None:
    """The bundle as a .zip that keeps what may be executed."""
    archive.unlink(missing_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(bundle.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(bundle.parent)), _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100000 | path.stat().st_mode & 0o777) << 16
                file.writestr(entry, path.read_bytes())


def sign(bundle: Path) -> None:
    """Ad hoc, by rcodesign's library: it seals all else into the launcher's signature. uv keeps its makers'."""
    import apple_platform  # for this alone

    apple_platform.sign(bundle, binary_identifier=bundle_plists.BUNDLE_ID, exclude=["Contents/Helpers/uv"])


def compile_launcher(target: Path) -> None:
    """For Apple silicon, on any machine."""
    source = str(MAC / "launcher.c")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", _TARGET, "-O2", "-s", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(target), source], check=True)


def fetch_uv(own_uv: str, folder: Path) -> Path:
    """The uv that ``uv.txt`` pins, in its build for Apple silicon."""
    pin = Path(__file__).parent / "uv.txt"
    into = ["--target", str(folder), "--python-platform", "aarch64-apple-darwin", "--no-deps", "--require-hashes"]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": bundle_plists.OLDEST_MACOS}
    command = [own_uv, "pip", "install", "--quiet", "--python", sys.executable, *into, "-r", str(pin)]
    subprocess.run(command, check=True, env=environment)
    return folder / "bin" / "uv"


def build_wheel(folder: Path) -> Path:
    """Pomona's own wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("pomona-*.whl")
    return wheel


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Builds the light app for Apple silicon.")
    parser.add_argument("--uv", default="uv", help="the uv of this machine, which fetches the one for the app")
    options = parser.parse_args()
    work, out = ROOT / "build" / "light", ROOT / "dist" / "light"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    out.mkdir(parents=True, exist_ok=True)
    launcher, icon = work / "Pomona", work / "Pomona.icns"
    compile_launcher(launcher)
    bundle_icon.write_icns(icon)
    parts = Parts(launcher, fetch_uv(options.uv, work / "uv"), build_wheel(work), ROOT / "requirements.txt", icon)
    bundle, archive = out / "Pomona.app", out / f"Pomona-{bundle_plists.version()}-light-arm64.zip"
    assemble(parts, bundle)
    sign(bundle)
    pack(bundle, archive)
    bundle_bytes = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    sys.stdout.write(f"{bundle}: {bundle_bytes / 1e6:.1f} MB\n{archive}: {archive.stat().st_size / 1e6:.1f} MB\n")
    return 0


def _copy(source: Path, target: Path, mode: int) -> None:
    shutil.copyfile(source, target)
    target.chmod(mode)


if __name__ == "__main__":
    sys.exit(main())
