"""A split that was checked says so in the window; and the window can check one."""

import asyncio
import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gui import samples
from gui.bridge import Bridge
from gui.checks import Badge, Checks, badge
from gui.menus import CANCEL_CHECK, CHECK
from gui.preview import make_preview
from gui.session import Phase
from gui.split.card import Tone
from gui.split.model import Split
from gui.wiring import connect
from runtime.check.process import check_in_process
from runtime.check.records import keep, known
from runtime.check.result import CheckResult
from runtime.check.runs import random_model
from runtime.check.versions import versions
from runtime.errors import PomonaError
from runtime.models.layout import read_layout
from tests.gui.scripted import ScriptedServices
from tests.matrix.configs import CONFIGS
from tests.running import runs

NODES = samples.virtual_nodes()
MODEL = samples.SMALL_MODEL.name


def plan(*counts, mode="pipeline"):
    made = make_preview(samples.SMALL_MODEL, [node.resources for node in NODES], Split(counts), mode).plan
    assert made is not None
    return made


def result(*split, mode="pipeline", identical=True, difference=0.0):
    return CheckResult(MODEL, split, mode, versions(), identical, difference, 96, 16)


def by_split(*results):
    return {(each.mode, each.split): each for each in results}


def test_only_the_very_split_and_mode_that_was_checked_has_a_badge():
    checks = Checks(by_split(result(5, 18, 7)))
    assert badge(plan(5, 18, 7), checks).words == "✓ Verified identical"
    assert badge(plan(5, 17, 8), checks) == Badge()
    assert badge(plan(30, 0, 0, mode="tensor"), checks) == Badge()
    assert badge(None, checks) == Badge()


def test_a_node_that_is_left_out_is_no_part_of_the_split():
    assert badge(plan(12, 0, 18), Checks(by_split(result(12, 18)))).tone is Tone.GOOD


def test_the_tooltip_names_versions_and_what_was_compared():
    now = versions()
    tooltip = badge(plan(5, 18, 7), Checks(by_split(result(5, 18, 7)))).tooltip
    assert tooltip == (
        f"{MODEL} in pipeline mode over 5,18,7 is the whole model: bit for bit, 96 prompt tokens and 16 more. "
        f"Checked on this Mac with pomona {now['pomona']}, mlx {now['mlx']} and mlx-lm {now['mlx-lm']}."
    )


def test_a_difference_is_told_as_loudly():
    checks = Checks(by_split(result(5, 18, 7, identical=False, difference=0.25)))
    shown = badge(plan(5, 18, 7), checks)
    assert (shown.words, shown.tone) == ("✗ Differs from the whole model", Tone.BAD)
    assert "logits differ by 0.25" in shown.tooltip


@contextmanager
def bridged(window, services, folder=Path("model")):
    bridge = Bridge(Path("home"), folder, services)
    connect(window, bridge)
    bridge.start()
    try:
        yield bridge
    finally:
        bridge.shutdown()
        assert bridge.join(15)


def words(window):
    label = window.header.badge
    assert label.isVisible() == bool(label.text())
    return label.text()


def test_the_badge_follows_the_boundaries_and_reads_no_file_for_it(qtbot, window):
    script = ScriptedServices()
    script.known_checks = by_split(result(10, 10, 10), result(5, 15, 10, identical=False))
    with bridged(window, script.services()):
        qtbot.waitUntil(lambda: words(window) == "✓ Verified identical")
        window.store.start_drag()
        for cut in range(10, 4, -1):
            window.store.move_boundary(0, cut)
            assert words(window) == {10: "✓ Verified identical", 5: "✗ Differs from the whole model"}.get(cut, "")
        window.store.cancel_drag()
        assert words(window) == "✓ Verified identical"
        window.start_session()
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        assert words(window) == "✓ Verified identical"
    assert script.known_reads == 1


def test_a_check_from_the_menu_shows_what_it_found(qtbot, window):
    script = ScriptedServices()
    script.check_result = result(10, 10, 10)
    with bridged(window, script.services()):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: words(window) == "✓ Verified identical")
        assert "mlx-lm" in window.header.badge.toolTip()
        assert script.checked == [window.store.plan]
        window.store.move_boundary(0, 9)
        script.check_result = result(9, 11, 10, identical=False, difference=1.5)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: words(window) == "✗ Differs from the whole model")
        assert "is NOT the whole model: logits differ by 1.5" in window.banner.words


def test_a_check_can_be_cancelled_and_ends_with_the_window(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script.services()):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        assert (words(window), window.menus.check.text()) == ("Checking…", CANCEL_CHECK)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: words(window) == "")
        assert window.menus.check.text() == CHECK
        window.menus.check.trigger()


@pytest.mark.parametrize(
    "outcome",
    [PomonaError("The rank went away."), CheckResult(MODEL, (10, 10, 10), "pipeline", versions(), refusal="No room.")],
    ids=["failed", "refused"],
)
def test_a_check_without_a_result_says_why(qtbot, window, outcome):
    script = ScriptedServices()
    script.check_result = outcome
    with bridged(window, script.services()):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: window.banner.words in {"The rank went away.", "No room."})
        qtbot.waitUntil(lambda: words(window) == "")


def test_a_session_has_the_memory_to_itself(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script.services()):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        window.start_session()
        qtbot.waitUntil(lambda: window.store.checks.running is None)
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        assert not window.menus.check.isEnabled()
        assert window.menus.check.toolTip() == "Stop the model first: a check needs its memory"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch) -> Path:
    """A real model in a folder, and no results yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIGS["llama"]["tied"]))
    asyncio.run(random_model(config, tmp_path / "Tiny"))
    return tmp_path / "Tiny"


def real(script):
    return replace(script.services(), read_layout=read_layout, known_checks=known, check=check_in_process)


@pytest.mark.timeout(120)
def test_the_window_checks_a_real_model_with_real_workers_and_remembers(qtbot, window, tiny):
    with bridged(window, real(ScriptedServices()), tiny):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: words(window) == "✓ Verified identical", timeout=100_000)
        assert "Tiny in pipeline mode over 3,2,2 is the whole model: bit for bit" in window.header.badge.toolTip()
    assert known(tiny)[("pipeline", (3, 2, 2))].identical


@pytest.mark.timeout(120)
def test_a_cancelled_check_leaves_no_process(qtbot, window, tiny):
    before = set(psutil.Process().children(recursive=True))

    def started(command=""):
        new = set(psutil.Process().children(recursive=True)) - before
        return [process for process in new if not command or runs(process, command)]

    with bridged(window, real(ScriptedServices()), tiny):
        qtbot.waitUntil(window.menus.check.isEnabled)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: len(started("worker")) == 3, timeout=60_000)
        window.menus.check.trigger()
        qtbot.waitUntil(lambda: words(window) == "", timeout=20_000)
        assert started() == []
    assert known(tiny) == {}


def test_what_was_kept_before_is_there_when_the_window_opens(qtbot, window, tiny):
    keep(tiny, CheckResult("Tiny", (3, 2, 2), "pipeline", versions(), identical=True, max_abs_difference=0.0))
    with bridged(window, real(ScriptedServices()), tiny):
        qtbot.waitUntil(lambda: words(window) == "✓ Verified identical")
