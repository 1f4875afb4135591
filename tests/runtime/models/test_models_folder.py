"""Where models are kept: usually in the data folder, or where a person says; what was kept before is still found."""

from __future__ import annotations

import pytest

from runtime.errors import PomonaError
from runtime.models.folder_names import folder_of
from runtime.models.manifest import folder_manifest
from runtime.models.models_folder import HomeStore, choose_folder, models_folder
from runtime.models.store import split_folder
from tests.hub import write_small_model


def test_new_models_go_to_the_chosen_folder_and_old_ones_stay_where_they_are(tmp_path):
    home, disk = tmp_path / "home", tmp_path / "disk"
    disk.mkdir()
    first, second = (write_small_model(tmp_path / name, layers=layers) for name, layers in (("one", 2), ("two", 3)))
    store = HomeStore(home)
    old = split_folder(store, folder_manifest(first), first, ["layer-00000"])
    assert old.folder.parent == models_folder(home) == home / "models"

    choose_folder(home, disk)
    new = split_folder(store, folder_manifest(second), second, ["layer-00001"])
    assert new.folder.parent == models_folder(home) == disk
    assert {model.folder for model in store.all()} == {old.folder, new.folder}
    assert store.open(folder_manifest(first)).folder == old.folder
    assert store.remove(new) > 0
    assert list(disk.iterdir()) == []

    choose_folder(home, None)
    assert store.writable_root() == home / "models"


def test_a_disk_that_is_away_is_said_and_not_written_beside(tmp_path):
    home, disk = tmp_path / "home", tmp_path / "disk"
    disk.mkdir()
    choose_folder(home, disk)
    disk.rmdir()
    model = write_small_model(tmp_path / "one", layers=2)
    with pytest.raises(PomonaError, match="is not there; connect its disk"):
        HomeStore(home).open(folder_manifest(model))
    assert not disk.exists()
    assert HomeStore(home).all() == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(PomonaError, match="Nothing can be written to"):
        choose_folder(tmp_path / "home", tmp_path / "nowhere")
    assert models_folder(tmp_path / "home") == tmp_path / "home" / "models"


def test_a_file_of_a_model_means_its_folder(tmp_path):
    folder = write_small_model(tmp_path / "one", layers=2)
    assert folder_of(folder) == folder
    for file in ("config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json"):
        assert folder_of(folder / file) == folder
    (tmp_path / "x.gguf").touch()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(PomonaError, match="GGUF"):
        folder_of(tmp_path / "x.gguf")
    with pytest.raises(PomonaError, match=r"notes\.txt is no model"):
        folder_of(tmp_path / "notes.txt")
