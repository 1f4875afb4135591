"""Which folder a person means, and what its name tells; the hub's cache: ``models--owner--name/snapshots/commit``."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

_FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer.json")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def folder_of(path: Path) -> Path:
    """The model folder that a person means by itself or by one of its files. Raises :class:`PomonaError`."""
    if not path.is_file():
        return path
    if path.suffix == ".gguf":
        raise PomonaError(f"{path.name} is in GGUF format; choose a version of the model in MLX or safetensors format.")
    if not any(fnmatch(path.name, pattern) for pattern in _FILES):
        raise PomonaError(f"{path.name} is no model; choose its folder, its config.json or a .safetensors file of it.")
    return path.parent


def model_name(folder: Path) -> str:
    """A model's name for people: its folder's, or the repository's for a snapshot in the Hugging Face cache.

    There the folder is ``models--<owner>--<name>/snapshots/<commit>``.
    """
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        return folder.parent.parent.name.rpartition("--")[2]
    return folder.name


def snapshot_of(folder: Path) -> tuple[str, str] | None:
    """Repository and commit of a snapshot in the Hugging Face cache; None for any other folder."""
    repository = folder.parent.parent.name
    if folder.parent.name == "snapshots" and repository.startswith("models--") and _COMMIT.fullmatch(folder.name):
        return repository.removeprefix("models--").replace("--", "/", 1), folder.name
    return None
