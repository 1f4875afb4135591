"""The light app's launcher, as its Linux twin: the same C file, the same bundle, a real uv, and this machine's Python.

Nothing is fetched: the lock is empty, and the wheel's ``pomona`` only says where it runs.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import first_setup
import light_app
import pytest

from resources import starting
from runtime.agent import login_item

ROOT = Path(__file__).parents[2]
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
UV = shutil.which("uv") or str(ROOT / ".tools/uv/bin/uv")
SAYS = """
import json, os, subprocess, sys
child = subprocess.run([sys.executable, "-c", "import pomona_child"], capture_output=True, text=True)
print(json.dumps({"words": sys.argv[1:], "prefix": sys.prefix, "executable": sys.executable, "program": os.readlink(
    "/proc/self/exe"), "launcher": os.environ["POMONA_LAUNCHER"], "child": child.stdout.strip()}))
"""
CHILD = 'import os; print(os.path.basename(os.readlink("/proc/self/exe")))'

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the twin is for Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here"),
    pytest.mark.skipif(
        not Path(sys.base_prefix, "lib", f"libpython{PYTHON}.so.1.0").exists(), reason="this Python has no libpython"
    ),
]


def make_wheel(folder, says=SAYS):
    files = {
        "pomona.py": says,
        "pomona_child.py": CHILD,
        "pomona-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: pomona\nVersion: 1\n",
        "pomona-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}")
    folder.mkdir(exist_ok=True)
    wheel = folder / "pomona-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
        file.writestr("pomona-1.dist-info/RECORD", "\n".join([*lines, "pomona-1.dist-info/RECORD,,", ""]))
    return wheel


class Twin:
    """A bundle for this machine, and an empty home to run it in."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.launcher = folder / "launcher"
        source = ROOT / "packaging" / "mac" / "launcher.c"
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", self.launcher, source, "-ldl"], check=True)
        self.lock = folder / "requirements.txt"
        self.lock.write_text("")
        self.bundle = folder / "Pomona.app"
        self.assemble(make_wheel(folder / "wheel"))

    def assemble(self, wheel):
        icon = self.folder / "icon"
        icon.touch()
        parts = light_app.Parts(self.launcher, Path(UV), wheel, self.lock, icon, PYTHON)
        light_app.assemble(parts, self.bundle)
        return parts

    def run(self, *words, **variables):
        environment = {
            "HOME": str(self.home),
            "PATH": f"{sysconfig.get_config_var('BINDIR')}:/usr/bin:/bin",
            "UV_PYTHON_PREFERENCE": "only-system",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_OFFLINE": "1",
            **variables,
        }
        return subprocess.run(
            [self.bundle / "Contents" / "MacOS" / "Pomona", *words],
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def app_folder(self):
        return self.home / ".local" / "share" / "pomona" / "app"


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    return Twin(tmp_path_factory.mktemp("twin"))


def test_the_first_run_sets_up_and_becomes_the_app(twin):
    done = twin.run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    program = str(twin.bundle / "Contents" / "MacOS" / "Pomona")
    environment = twin.app_folder / (twin.bundle / "Contents/Resources/build").read_text().strip() / "venv"
    assert found == {
        "words": ["doctor", "--json"],
        "prefix": str(environment),
        "executable": str(environment / "bin" / "python"),
        "program": program,  # Python is inside the launcher's own process
        "launcher": program,
        "child": Path(os.path.realpath(environment / "bin" / "python")).name,  # what it starts is not
    }
    assert light_app.WHAT_IT_FETCHES in done.stderr
    assert not (twin.app_folder / "cache").exists()


def test_the_second_run_starts_at_once(twin):
    twin.run("anything")
    shutil.copy2(twin.bundle / "Contents/Helpers/uv", twin.folder / "uv")
    (twin.bundle / "Contents/Helpers/uv").unlink()  # it is not asked
    try:
        done = twin.run("agent", PYTHONPATH="/nonsense")
    finally:
        shutil.move(twin.folder / "uv", twin.bundle / "Contents/Helpers/uv")
    assert json.loads(done.stdout)["words"] == ["agent"]
    assert done.stderr == ""


def test_another_version_replaces_the_first(twin):
    twin.run("anything")
    before = {path.name for path in twin.app_folder.iterdir()}
    twin.assemble(make_wheel(twin.folder / "newer", "print('newer')"))
    assert twin.run("anything").stdout == "newer\n"
    after = {path.name for path in twin.app_folder.iterdir()}
    assert len(after) == len(before) == 1
    assert after != before


def test_what_cannot_be_fetched_is_said_and_tried_again_later(twin):
    before = twin.lock.read_text()
    twin.lock.write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    build = twin.assemble(make_wheel(twin.folder / "wheel")).build
    done = twin.run("anything")
    twin.lock.write_text(before)
    assert done.returncode == 1
    assert "Pomona could not fetch what it needs" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (twin.app_folder / build / "ready").exists()


def test_an_app_that_is_not_whole_says_so(twin):
    (twin.bundle / "Contents/Resources/build").unlink()
    done = twin.run("anything")
    assert done.returncode == 1
    assert done.stderr.startswith("Pomona: The app is not whole")


def test_names_that_it_shares_with_pomona():
    assert first_setup.LOGIN_ITEM == login_item.LABEL
    assert first_setup.LAUNCHER_VARIABLE == starting.LAUNCHER_VARIABLE
    assert starting.LAUNCHER_VARIABLE in (ROOT / "packaging/mac/launcher.c").read_text()


def test_how_far_it_is_in_words():
    meter = first_setup.Meter(800_000_000)
    assert meter.words(0.0, 0) == "0 of about 800 MB"
    assert meter.words(10.0, 200_000_000) == "200 of about 800 MB, 20.0 MB/s, about 30 s left"
    assert meter.words(25.0, 200_000_000) == "200 of about 800 MB"  # it stands still
    assert meter.share(900_000_000) == 0.99


def test_a_file_with_two_names_counts_once(tmp_path):
    (tmp_path / "one").write_bytes(b"12345")
    os.link(tmp_path / "one", tmp_path / "two")
    assert first_setup.size_of(tmp_path) == 5


def test_the_archive_keeps_what_may_be_executed(tmp_path):
    bundle = tmp_path / "Pomona.app"
    (bundle / "Contents" / "MacOS").mkdir(parents=True)
    program = bundle / "Contents" / "MacOS" / "Pomona"
    program.write_text("x")
    program.chmod(0o755)
    for name in ("one.zip", "two.zip"):
        light_app.pack(bundle, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as file:
        (entry,) = file.infolist()
    assert entry.filename == "Pomona.app/Contents/MacOS/Pomona"
    assert entry.external_attr >> 16 & 0o777 == 0o755
