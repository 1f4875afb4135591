"""The layout of a model with what its caches take, asked of its own code; the first time that takes a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from runtime.errors import PomonaError
from runtime.models.cache_layout import read_caches
from runtime.models.config import read_settings
from runtime.models.layout import read_layout
from runtime.models.manifest import MANIFEST_NAME, stored_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.layout import ModelLayout

_log = logging.getLogger(__name__)


def read_planning_layout(folder: Path) -> ModelLayout:
    """What a plan has to know of the model in ``folder``.

    If the model's code does not tell what its caches take, they are estimated from ``config.json``. Raises
    :class:`PomonaError` if the folder holds no complete model.
    """
    layout = read_layout(folder)
    stored = (folder / MANIFEST_NAME).is_file()
    settings = stored_manifest(folder).settings if stored else read_settings(folder.absolute())
    if layout.figures is None:
        return layout
    try:
        caches = read_caches(settings, layout.figures.dtype)
    except PomonaError as error:
        _log.info("%s: %s", layout.name, error)
        return layout
    if len(caches.layers) != len(layout.layer_bytes):
        return layout
    figures = msgspec.structs.replace(layout.figures, caches=caches.layers, copies=caches.copies)
    return msgspec.structs.replace(layout, figures=figures)
