"""The models that a person can choose on this machine, with what to say of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agent.models.inventory import held_model
from runtime.agent.models.library import Library, hub_cache_folder
from runtime.errors import PomonaError
from runtime.models.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.agent.models.library import Copy


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model that is here, whole or in parts."""

    name: str
    folder: Path
    layer_count: int
    layers_held: int
    disk_bytes: int
    quantization: str


def model_choices(home: Path) -> tuple[ModelChoice, ...]:
    """Those in the store of ``home`` and in the Hugging Face cache that can be run, of each the fullest copy."""
    best: dict[str, ModelChoice] = {}
    for choice in _choices(Library(ModelStore(home / "models"), hub_cache_folder())):
        known = best.get(choice.name)
        if known is None or choice.layers_held > known.layers_held:
            best[choice.name] = choice
    return tuple(sorted(best.values(), key=lambda choice: choice.name.lower()))


def _choices(library: Library) -> Iterator[ModelChoice]:
    for copy in library.all():
        if (choice := _choice(copy)) is not None:
            yield choice


def _choice(copy: Copy) -> ModelChoice | None:
    try:
        held = held_model(copy)
    except PomonaError:  # mlx-lm has no such type
        return None
    return ModelChoice(held.name, copy.folder, held.layer_count, held.layers_held, held.disk_bytes, held.quantization)
