"""What a model folder's name tells; the Hugging Face cache has ``models--owner--name/snapshots/commit``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")


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
