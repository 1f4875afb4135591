"""Every model type of mlx-lm in stages computes what the whole model computes, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest

from runtime.engine.handover import Handover
from runtime.engine.layer_calls import LayerCall
from runtime.engine.load import build_stage
from runtime.models.layout import read_layout
from runtime.planning.plan import stage_weight_bytes
from tests.matrix import support
from tests.matrix.configs import CONFIGS, all_variants
from tests.matrix.staged import SPLITS, UNASKED_BYTES, held_bytes, in_stages, saved, whole
from tests.matrix.support import Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.variant import Config

ROOT = Path(__file__).parents[2]
SLOW = {"gemma3n", "kimi_k3", "rwkv7"}
"""MLX compiles their functions with a C++ compiler on a CPU, which takes longer than all the rest."""
VARIANTS = all_variants()
SPLITTABLE = [each for each in VARIANTS if each[0] not in support.NEEDS_METAL and not support.refusal(each[2])]
FAST = [
    pytest.param(config, SPLITS[place % len(SPLITS)], id=f"{name}-{variant}")
    for place, (name, variant, config) in enumerate(SPLITTABLE)
    if variant == next(iter(CONFIGS[name])) and name not in SLOW
]
"""The first variant of each type over one split, the splits in turn."""


@pytest.mark.parametrize(("config", "split"), FAST)
def test_one_split_of_each_type_is_the_whole_model(config, split, tmp_path):
    assert differing(config, [split], tmp_path / "model") == []


def test_the_page_is_of_the_installed_versions_and_has_every_type():
    text = support.PAGE.read_text()
    assert support.versions() in text, "run make matrix: it tells which rows an upgrade changes"
    rows = support.rows_of(text)
    assert rows.keys() == CONFIGS.keys()
    cells = [line.split("|") for line in rows.values()]
    assert sum(support.IDENTICAL in pipeline for _, _, _, pipeline, _, _ in cells) >= 108
    assert sum(tensor.strip()[0].isdigit() for _, _, _, _, tensor, _ in cells) >= 40
    assert not [row for row in rows.values() if "differs" in row or "not measured" in row]


def test_a_row_that_an_upgrade_changes_is_found():
    text = support.PAGE.read_text()
    worse = Measured()
    worse.stages["llama"]["tied"] = "differs over [(3, 4)]"
    assert support.changed_rows(text, text) == []
    assert "differs over [(3, 4)]" in support.rows_of(support.page(worse))["llama"]
    assert "llama" in support.changed_rows(text, support.page(worse))
    assert support.changed_rows(text, text.replace("| qwen2 | ", "| qwen9 | ")) == ["qwen2", "qwen9"]


def test_every_layer_runs_on_one_stage_and_once(monkeypatch, tmp_path):
    folder = saved(CONFIGS["qwen2"]["untied"], tmp_path / "model")
    ran: list[int] = []
    real = LayerCall.run

    def run(call: LayerCall) -> Any:
        ran.append(call.index)
        return real(call)

    monkeypatch.setattr(LayerCall, "run", run)
    monkeypatch.setattr(Handover, "every_call", True)
    for first, end in [(0, 4), (4, 7), (0, 1), (1, 2), (2, 7)]:
        stage = build_stage(folder, first, end, None)
        ran.clear()
        stage.warm_up()
        its_own = list(range(first, end))
        assert ran == its_own * (len(ran) // len(its_own))
        assert ran


@pytest.mark.parametrize("mixed", [False, True], ids=["all alike", "norms in float32"])
@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16], ids=str)
def test_half_precision_crosses_a_boundary_as_it_is(dtype, mixed, tmp_path):
    folder = saved(CONFIGS["llama"]["tied"], tmp_path / "model")
    loaded: Any = mx.load(str(folder / "model.safetensors"))
    weights = {name: array if mixed and "norm" in name else array.astype(dtype) for name, array in loaded.items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    expected = [logits.tobytes() for logits in whole(folder)]
    for split in SPLITS[::2]:
        assert [logits.tobytes() for logits in in_stages(folder, split)] == expected


@pytest.mark.parametrize(
    ("name", "variant", "config"), VARIANTS, ids=lambda part: part if isinstance(part, str) else ""
)
@pytest.mark.matrix
@pytest.mark.timeout(900)
def test_every_split_of_every_variant_is_the_whole_model(name, variant, config, tmp_path, measured):
    if reason := support.refusal(config):
        measured.stages[name][variant] = f"refused: {reason.removeprefix('It ')}"
    elif name in support.NEEDS_METAL:
        script = [sys.executable, "-m", "tests.matrix.without_metal", name]
        subprocess.run(script, cwd=ROOT, check=True)
    else:
        different = differing(config, SPLITS, tmp_path / "model")
        measured.stages[name][variant] = f"differs over {different}" if different else support.IDENTICAL
        assert not different
        assert misplanned(tmp_path / "model") == []


def misplanned(folder: Path, split: Sequence[int] = (3, 2, 2)) -> list[tuple[int, int]]:
    """Bytes that stages hold and that were planned for them, where these disagree."""
    layout = read_layout(folder)
    spans = pairwise(accumulate(split, initial=0))
    pairs = [(held_bytes(folder, *span), stage_weight_bytes(layout, *span)) for span in spans]
    return [(held, planned) for held, planned in pairs if abs(held - planned) > UNASKED_BYTES + planned // 100]


def differing(config: Config, splits: list[tuple[int, ...]], folder: Path) -> list[tuple[int, ...]]:
    """The splits of which some logit has other bits."""
    saved(config, folder)
    expected = [logits.tobytes() for logits in whole(folder)]
    return [split for split in splits if [logits.tobytes() for logits in in_stages(folder, split)] != expected]
