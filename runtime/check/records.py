"""What was found out about splits of a model, kept in the user's cache: one small JSON file for each model.

A model is known by its configuration and the names and sizes of its weight files, so a changed one is another.
"""

from __future__ import annotations

import hashlib
import logging
import os
from typing import TYPE_CHECKING

import msgspec

from runtime.check.result import CheckResult
from runtime.check.versions import versions
from runtime.models.cache_folder import cache_folder
from runtime.models.config import CONFIG_NAME
from runtime.models.weight_files import WEIGHTS_PATTERN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runtime.planning.values import Mode

_log = logging.getLogger(__name__)

_MOST = 1000
"""Results of one model; the oldest go."""


def keep(folder: Path, result: CheckResult) -> None:
    """Keep a result in place of an older one of the same split with the same versions.

    A cache that cannot be written is no failure.
    """
    others = [kept for kept in _results(folder) if _kind(kept) != _kind(result)]
    path = _path(folder)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(msgspec.json.encode([*others, result][-_MOST:]))
        partial.replace(path)
    except OSError as error:
        _log.warning("the result could not be kept: %s", error)


def known(folder: Path) -> dict[tuple[Mode, tuple[int, ...]], CheckResult]:
    """What checks with the installed versions found, by mode and split."""
    now = versions()
    return {(result.mode, result.split): result for result in _results(folder) if result.versions == now}


def verified(folder: Path, mode: Mode, split: Sequence[int]) -> CheckResult | None:
    """What a check of this split with the installed versions found, if there was one."""
    return known(folder).get((mode, tuple(split)))


def _kind(result: CheckResult) -> tuple[Mode, tuple[int, ...], dict[str, str]]:
    return result.mode, result.split, result.versions


def _results(folder: Path) -> list[CheckResult]:
    try:
        return msgspec.json.decode(_path(folder).read_bytes(), type=list[CheckResult])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        _log.warning("kept results are not readable and count as none: %s", error)
        return []


def _path(folder: Path) -> Path:
    known_by = hashlib.sha256((folder / CONFIG_NAME).read_bytes())
    for file in sorted(folder.glob(WEIGHTS_PATTERN)):
        known_by.update(f"{file.name} {file.stat().st_size}\n".encode())
    return cache_folder() / "checks" / f"{known_by.hexdigest()[:32]}.json"
