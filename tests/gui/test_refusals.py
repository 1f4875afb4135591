"""What a model cannot do is refused by ``plan``, ``check`` and the window with one sentence, before any worker."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gui.bridge import Bridge
from gui.samples import node
from gui.session import Phase
from gui.wiring import connect
from runtime.check.process import check_in_process
from runtime.check.records import known
from runtime.models.planning_layout import read_planning_layout
from tests.gui.scripted import ScriptedServices
from tests.matrix.configs import CONFIGS
from tests.runtime.models.files import decoder, write_model

ROOT = Path(__file__).parents[2]
STARTED_SOMETHING = 77
COMMANDS = f"""
import contextlib, io, json, os, sys, pomona

forbidden = {{"worker", "runtime.engine.random_model", "runtime.engine.whole_model"}}

def forbid(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec") and forbidden & set(map(str, arguments[1])):
        os._exit({STARTED_SOMETHING})

sys.addaudithook(forbid)
for words in json.loads(sys.argv[1]):
    sys.argv = ["pomona", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = pomona.main()
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""
"""Runs commands of Pomona, and ends with a status of its own as soon as one of them starts to run a model."""
SHAPES = {"model.embed_tokens.weight": (50, 8), "model.norm.weight": (8,), "lm_head.weight": (50, 8)}
LLAMA = {**CONFIGS["llama"]["untied"], "num_attention_heads": 6, "num_key_value_heads": 6}
CASES = {
    "six heads on four ranks": (LLAMA, "tensor", 4, "has 6 attention heads, which 4 nodes cannot share equally"),
    "six heads on four ranks, Qwen2": (
        {**LLAMA, "model_type": "qwen2"}, "tensor", 4, "has 6 attention heads, which 4 nodes cannot share equally",
    ),
    "six heads on four ranks, Ministral 3": (
        {**CONFIGS["ministral3"]["full"], "num_attention_heads": 6, "num_key_value_heads": 6}, "tensor", 4,
        "has 6 attention heads, which 4 nodes cannot share equally",
    ),
    "fewer key-value heads than ranks": (
        CONFIGS["llama"]["untied"], "tensor", 4, "has 2 key-value heads, which 4 nodes cannot share equally",
    ),
    "quantization groups": (
        {**LLAMA, "intermediate_size": 96, "quantization": {"group_size": 32, "bits": 4}}, "tensor", 2,
        "has 3 quantization groups in each row of",
    ),
    "vocabulary": (
        {**CONFIGS["qwen3_5"]["text untied"], "vocab_size": 129}, "tensor", 2, "has 129 tokens in its vocabulary",
    ),
    "Mamba": (CONFIGS["mamba2"]["untied"], "tensor", 2, "has Mamba layers, which tensor mode does not share"),
    "two rounds": (
        CONFIGS["iquestloopcoder"]["default"], "pipeline", 2, "sends every token through its layers 2 times",
    ),
}  # fmt: skip
UNREADABLE = {
    "no such type": {**LLAMA, "model_type": "gpt5"},
    "program code of its own": {**LLAMA, "model_file": "modeling.py"},
    "without a package": {**LLAMA, "model_type": "olmo"},
}


def model(folder, config):
    """A model whose weights nobody will read."""
    return write_model(folder, SHAPES | decoder("model.layers.", 7), **config)


def told(*commands):
    """What each command refuses with."""
    written = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, written], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    sentences = set()
    for line in done.stdout.splitlines():
        status, out, err = json.loads(line)
        assert status == 2, (out, err)
        sentences.add(json.loads(out)["refusal"] if out else err.removeprefix("pomona: ").strip())
    return sentences


def by_command(folder, mode, count):
    """The sentences of both commands, as text and as JSON, for as many nodes with memory enough."""
    nodes = [part for index in range(count) for part in ("--node", f"node{index}=64")]
    split = [] if mode == "tensor" else ["--split", ",".join(["3"] * (count - 1) + [str(7 - 3 * (count - 1))])]
    ranks = split or ["--ranks", count]
    plan, check = ["plan", folder, *nodes, *split, "--mode", mode], ["check", folder, *ranks, "--mode", mode]
    bare = ["check", folder / "config.json", *ranks, "--mode", mode]
    return told(plan, [*plan, "--json"], check, [*check, "--json"], bare)


def opened(window, folder, count, script):
    script.nodes = tuple(node(f"Mac {index}", "M4", 64, 60) for index in range(count))
    services = replace(script.services(), read_layout=read_planning_layout, known_checks=known, check=check_in_process)
    bridge = Bridge(Path("home"), folder, services)
    connect(window, bridge)
    bridge.start()
    return bridge


@pytest.mark.parametrize("name", CASES)
def test_a_mode_that_a_model_cannot_do_is_refused_everywhere_alike(qtbot, window, tmp_path, name):
    config, mode, count, words = CASES[name]
    folder = model(tmp_path / "Tiny", config)
    script = ScriptedServices()
    bridge = opened(window, folder, count, script)
    try:
        qtbot.waitUntil(lambda: window.store.preview is not None and len(window.store.nodes) == count, timeout=60_000)
        window.store.set_mode(mode)
        shown = window.header.status.text()
        assert shown.startswith(f"Tiny {words}")
        assert not window.header.start.isEnabled()
        assert window.header.start.toolTip() == shown
        assert not window.menus.check.isEnabled()
        assert window.menus.check.toolTip() == shown
        window.start_session()
        window.desk.check_or_cancel()
        assert window.store.session.phase is Phase.IDLE
        assert window.store.checks.running is None
    finally:
        bridge.shutdown()
        assert bridge.join(5)
    assert script.sessions == []
    assert by_command(folder, mode, count) == {shown}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_model_that_cannot_run_at_all_is_refused_everywhere_alike(qtbot, window, tmp_path, name):
    folder = model(tmp_path / "Tiny", UNREADABLE[name])
    bridge = opened(window, folder, 2, ScriptedServices())
    try:
        qtbot.waitUntil(lambda: bool(window.banner.words), timeout=60_000)
        assert not window.header.start.isEnabled()
    finally:
        bridge.shutdown()
        assert bridge.join(5)
    nodes = ("--node", "a=64", "--node", "b=64")
    commands = (("plan", folder, *nodes), ("check", folder), ("check", folder / "config.json"))
    assert told(*commands) == {window.banner.words}


def test_an_adapter_is_refused_everywhere_alike(qtbot, window, tmp_path):
    folder = model(tmp_path / "Tiny", CONFIGS["llama"]["untied"])
    (folder / "adapter_config.json").write_text("{}")
    bridge = opened(window, folder, 2, ScriptedServices())
    try:
        qtbot.waitUntil(lambda: bool(window.banner.words), timeout=60_000)
    finally:
        bridge.shutdown()
        assert bridge.join(5)
    assert "adapter" in window.banner.words
    assert told(("plan", folder, "--node", "a=64"), ("check", folder)) == {window.banner.words}
