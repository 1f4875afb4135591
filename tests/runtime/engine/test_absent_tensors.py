"""A stage loads whole, checked parts alone, or says which are not there."""

from __future__ import annotations

import pytest

from runtime.engine.load import build_stage
from runtime.errors import PomonaError
from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from runtime.models.store import ModelStore, split_folder
from tests.hub import write_small_model


@pytest.fixture
def model(tmp_path):
    """A store with layers 0 and 1 of six."""
    folder = write_small_model(tmp_path / "Small-Llama")
    manifest = folder_manifest(folder)
    return split_folder(ModelStore(tmp_path / "store"), manifest, folder, stage_parts(model_parts(manifest), 0, 2))


def test_a_stage_without_its_parts_is_refused_before_weights_are_read(model):
    with pytest.raises(
        PomonaError,
        match=r"Small-Llama is not complete on this node: layer-00002, layer-00003 of layers 0 to 3 must be",
    ):
        build_stage(model.folder, 0, 4, None)


def test_what_is_on_its_way_or_cut_off_is_not_there(model):
    part = model.parts()["layer-00002"]
    model.partial(part).write_bytes(bytes(part.byte_count))
    with pytest.raises(PomonaError, match="layer-00002 of layers 0 to 2 must be fetched first"):
        build_stage(model.folder, 0, 3, None)
    cut = model.folder / model.parts()["layer-00001"].file_name
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(PomonaError, match="layer-00001 of layers 0 to 1 must be fetched first"):
        build_stage(model.folder, 0, 2, None)
