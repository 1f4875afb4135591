"""Every model type of mlx-lm in stages computes what the whole model computes, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest

from runtime.models.layout import read_layout
from runtime.planning.plan import stage_weight_bytes
from tests.matrix import support
from tests.matrix.configs import CONFIGS, all_variants
from tests.matrix.staged import SPLITS, UNASKED_BYTES, held_bytes, in_stages, saved, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    assert support.rows_of(text).keys() == CONFIGS.keys()


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
        measured[name][variant] = f"refused: {reason.removeprefix('It ')}"
    elif name in support.NEEDS_METAL:
        script = [sys.executable, "-m", "tests.matrix.without_metal", name]
        subprocess.run(script, cwd=ROOT, check=True)
    else:
        different = differing(config, SPLITS, tmp_path / "model")
        measured[name][variant] = f"differs over {different}" if different else support.IDENTICAL
        assert not different
        assert misplanned(tmp_path / "model") == []


@pytest.fixture(scope="session")
def measured(request: pytest.FixtureRequest) -> Iterator[dict[str, dict[str, str]]]:
    """What the matrix found; written down at the end if all of it ran."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    before = support.PAGE.read_text() if support.PAGE.exists() else ""
    yield found
    if sum(MATRIX_TEST in item.name for item in request.session.items) < len(VARIANTS):
        return
    text = support.page(found)
    support.PAGE.parent.mkdir(exist_ok=True)
    support.PAGE.write_text(text)
    old, new = support.rows_of(before), support.rows_of(text)
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    assert not changed, f"{support.PAGE.name} changed for {', '.join(changed)}; look at it, then commit it"


MATRIX_TEST = test_every_split_of_every_variant_is_the_whole_model.__name__


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
