"""What this machine has of models, and what a node said that it has, as places of the catalogue."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from runtime.agent.models.inventory import held_models
from runtime.cluster.catalogue import ModelPlace
from runtime.cluster.model_names import own_library
from runtime.models.models_folder import chosen_folder

if TYPE_CHECKING:
    from discovery.home import Home
    from runtime.agent.models.library import Library
    from runtime.cluster.model_lists import NodeModels

THIS_MACHINE = "this machine"


def own_place(home: Home, name: str = THIS_MACHINE, library: Library | None = None) -> ModelPlace:
    """What this machine has, whether or not its agent runs; ``library`` may know of more folders."""
    folder = chosen_folder(home.folder) or home.folder
    free = shutil.disk_usage(folder).free if folder.is_dir() else None
    return ModelPlace(name, home.identity.node_id, tuple(held_models(library or own_library(home))), free)


def place_of(found: NodeModels) -> ModelPlace:
    """What a node has that was asked."""
    resources = found.node.resources
    return ModelPlace(resources.name, resources.node_id, found.models, resources.disk_free_bytes, found.trouble)
