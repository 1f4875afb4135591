"""What a full copy on this node holds, after someone has been at its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runtime.models.manifest import manifest_of
from runtime.models.part_files import FullFolder
from runtime.models.parts import model_parts
from tests.hub import write_small_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HARMS: dict[str, Callable[[Path], None]] = {
    "cut short": lambda file: os.truncate(file, file.stat().st_size - 1),
    "grown": lambda file: os.truncate(file, file.stat().st_size + 1),
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_lies_in_a_file_of_another_size_is_not_here_any_more(tmp_path, harm):
    folder = write_small_model(tmp_path / "Small-Llama", layers=2)
    manifest = manifest_of(folder)
    parts = model_parts(manifest)
    reader = FullFolder(folder, manifest)
    assert all(reader.holds(part) for part in parts.values())
    first, second = sorted(folder.glob("*.safetensors"))
    HARMS[harm](second)
    held = {name for name, part in parts.items() if reader.holds(part)}
    assert held == {name for name, part in parts.items() if {one.file for one in part.segments} <= {first.name}}
    assert held < set(parts)
