"""A node without a GPU keeps float32 scales if its person agrees, and computes with them as with any such model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np
import pytest

from discovery.home import Home
from runtime.agent.models import fetching as fetching_module
from runtime.agent.models.fetching import Fetching
from runtime.agent.models.library import Library
from runtime.agent.models.messages import FetchOrder, ModelOrder
from runtime.errors import PomonaError
from runtime.models import half_scales
from runtime.models.half_scales import agree, agrees, converted_manifest
from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from runtime.models.store import ModelStore
from tests.matrix.staged import in_stages, saved
from tests.matrix.variant import text

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.fetch.transfer import Transfer


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A model in 4 bits whose other numbers are bfloat16, on a machine that computes on its CPU."""
    monkeypatch.setattr(half_scales, "runs_halves_badly", lambda: True)
    monkeypatch.setattr(fetching_module, "runs_halves_badly", lambda: True)
    folder = saved(text("llama", bits=4), tmp_path / "Small-Llama")
    rewrite(folder, lambda _name, array: array.astype(mx.bfloat16) if array.dtype == mx.float32 else array)
    return folder


def rewrite(folder: Path, change) -> None:
    for path in folder.glob("*.safetensors"):
        loaded: Any = mx.load(str(path))
        weights = {name: change(name, array) for name, array in loaded.items()}
        mx.eval(weights)
        mx.save_safetensors(str(path), weights, {"format": "mlx"})


async def fetch(home: Home, folder: Path, first: int, end: int) -> tuple[Path, list[str]]:
    """What a node's worker loads, and the parts that had to be moved for it."""
    fetching = Fetching(home, Library(ModelStore(home.folder / "models")))
    manifest = folder_manifest(folder)
    names = stage_parts(model_parts(manifest), first, end)
    order = FetchOrder(ModelOrder(manifest.name, "", manifest.revision, str(folder)), tuple(names), ())
    moved: list[Transfer] = []
    done = await fetching.fetch(order, moved.append)
    assert set(names) <= fetching.held(order.model, 1).all_parts
    return type(folder)(done.folder), [name for transfer in moved for name in transfer.names]


async def test_stages_with_converted_scales_are_those_of_a_model_that_has_them(folder, tmp_path):
    home = Home(tmp_path / "home")
    agree(home.folder, on=True)
    manifest = folder_manifest(folder)
    own, _moved = await fetch(home, folder, 0, 7)
    assert own != folder
    assert not list(ModelStore(home.folder / "models").open(manifest).folder.glob("*.safetensors"))

    rewrite(folder, lambda name, array: array.astype(mx.float32) if name.endswith((".scales", ".biases")) else array)
    expected = in_stages(folder, (2, 4, 1))
    for logits, right in zip(in_stages(own, (2, 4, 1)), expected, strict=True):
        np.testing.assert_array_equal(logits, right)


async def test_a_moved_boundary_converts_what_moved_and_moves_nothing_twice(folder, tmp_path):
    home = Home(tmp_path / "home")
    agree(home.folder, on=True)
    _own, moved = await fetch(home, folder, 2, 4)
    assert moved == ["layer-00002", "layer-00003"]
    own, moved = await fetch(home, folder, 2, 6)
    assert moved == ["layer-00004", "layer-00005"]
    again, moved = await fetch(home, folder, 3, 6)
    assert (again, moved) == (own, [])


async def test_without_a_word_from_the_person_models_stay_as_they_are(folder, tmp_path):
    home = Home(tmp_path / "home")
    assert await fetch(home, folder, 0, 7) == (folder, [])
    agree(home.folder, on=True)
    agree(home.folder, on=False)
    assert not agrees(home.folder)
    assert await fetch(home, folder, 0, 7) == (folder, [])


def test_a_model_without_half_precision_scales_is_not_converted(tmp_path):
    assert converted_manifest(folder_manifest(saved(text("llama", bits=4), tmp_path / "single"))) is None
    assert converted_manifest(folder_manifest(saved(text("llama"), tmp_path / "plain"))) is None


def test_a_machine_with_a_gpu_has_no_need_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(half_scales, "runs_halves_badly", lambda: False)
    with pytest.raises(PomonaError, match="computes on its GPU"):
        agree(tmp_path, on=True)
