"""Every architecture loads from a split store, each stage from its own parts alone, exactly as from its full folder."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from runtime.models.store import ModelStore, split_folder
from tests.matrix import support
from tests.matrix.configs import CONFIGS, all_variants
from tests.matrix.staged import in_stages, saved

if TYPE_CHECKING:
    from pathlib import Path

    from tests.matrix.variant import Config

SPLIT = (2, 4, 1)
SPLITTABLE = [each for each in all_variants() if each[0] not in support.NEEDS_METAL and not support.refusal(each[2])]
ONE_OF_EACH_KIND = ("llama", "deepseek_v3", "gemma3_text", "qwen3_next", "mamba2", "gpt2")


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_a_stage_loads_from_its_parts_alone(name, tmp_path):
    assert_same(next(iter(CONFIGS[name].values())), tmp_path)


@pytest.mark.matrix
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "variant", "config"), SPLITTABLE, ids=lambda part: part if isinstance(part, str) else ""
)
def test_every_architecture_loads_from_parts(name, variant, config, tmp_path):
    assert_same(config, tmp_path)


def assert_same(config: Config, scratch: Path) -> None:
    folder = saved(config, scratch / "full")
    manifest = folder_manifest(folder)
    parts = model_parts(manifest)
    folders = []
    for index, (first, end) in enumerate(pairwise(accumulate(SPLIT, initial=0))):
        names = stage_parts(parts, first, end)
        folders.append(split_folder(ModelStore(scratch / f"node{index}"), manifest, folder, names).folder)
    expected: list[Any] = [logits.tobytes() for logits in in_stages(folder, SPLIT)]
    assert [logits.tobytes() for logits in in_stages(folders, SPLIT)] == expected
