"""“Share this Mac when I log in”: what is written, what launchd is told, and that nothing stays."""

import asyncio
import plistlib

import pytest

from runtime.agent.login_item import BUNDLE_ID, LABEL, LoginItem, launch_agent, removed_with
from runtime.cli.commands import main
from runtime.errors import PomonaError

EXECUTABLE = "/Applications/Pomona.app/Contents/MacOS/Pomona"
COMMAND = (EXECUTABLE, "agent", "--at-login")


class Launchd:
    """Notes what it is told; answers as it is set up."""

    def __init__(self, bootstrap=(0, "")):
        self.told = []
        self.bootstrap = bootstrap

    def __call__(self, words):
        self.told.append(words[0])
        return self.bootstrap if words[0] == "bootstrap" else (0, "")


def test_the_property_list_runs_the_bundles_own_executable(tmp_path):
    item = LoginItem(tmp_path / "Library" / "LaunchAgents", Launchd())
    item.install(COMMAND, tmp_path / "logs" / "agent.log")
    with item.path.open("rb") as file:
        written = plistlib.load(file)
    assert written == launch_agent(COMMAND, tmp_path / "logs" / "agent.log")
    assert item.path.name == f"{written['Label']}.plist" == f"{LABEL}.plist"
    assert written["ProgramArguments"][0] == EXECUTABLE
    assert written["AssociatedBundleIdentifiers"] == [BUNDLE_ID]
    assert written["RunAtLoad"] is True
    assert written["KeepAlive"] == {"SuccessfulExit": False}
    assert item.path.stat().st_mode & 0o777 == 0o644


def test_off_leaves_nothing(tmp_path):
    launchd = Launchd()
    item = LoginItem(tmp_path / "LaunchAgents", launchd)
    item.install(COMMAND, tmp_path / "logs" / "agent.log")
    item.install(COMMAND, tmp_path / "logs" / "agent.log")  # twice is once
    assert item.installed
    item.remove()
    item.remove()
    assert list(item.path.parent.iterdir()) == []
    assert launchd.told == ["bootout", "bootstrap"] * 2 + ["bootout"]


def test_what_launchd_refuses_is_said_and_leaves_nothing(tmp_path):
    item = LoginItem(tmp_path, Launchd((125, "Domain does not support specified action")))
    with pytest.raises(PomonaError, match="Domain does not support"):
        item.install(COMMAND, tmp_path / "agent.log")
    assert list(tmp_path.iterdir()) == []


async def test_the_item_goes_when_the_app_is_deleted(tmp_path):
    program = tmp_path / "Pomona"
    program.touch()
    item = LoginItem(tmp_path / "LaunchAgents", Launchd())
    item.install(COMMAND, tmp_path / "agent.log")
    watching = asyncio.create_task(removed_with(program, item, look_seconds=0.01))
    await asyncio.sleep(0.05)
    assert not watching.done()
    program.unlink()
    await asyncio.wait_for(watching, 5)
    assert not item.installed


def test_elsewhere_it_is_refused_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    assert main(["login", "on"], lambda *_: 0) == 2
    assert capsys.readouterr().err.startswith("pomona: Login items are a Mac's")
