"""Lets a worker import mlx_lm without its text half.

A worker sees token ids alone, but ``import mlx_lm`` brings tokenizers, transformers and the hub's client: 2.4 s of CPU
and 100 MB for each rank, against 0.3 s for the models themselves (measured with mlx-lm 0.32.2). So the package is
entered without running its ``__init__``, and what ``mlx_lm.utils`` imports for text is a stand-in that refuses calls.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import NoReturn


def import_mlx_lm() -> None:
    """Import ``mlx_lm.utils`` and what models need. Only for a process that never touches text."""
    spec = importlib.util.find_spec("mlx_lm")
    if spec is None:
        raise ModuleNotFoundError("mlx_lm")
    sys.modules["mlx_lm"] = importlib.util.module_from_spec(spec)
    sys.modules["mlx_lm.tokenizer_utils"] = _stand_in("mlx_lm.tokenizer_utils", "TokenizerWrapper", "load")
    # The hub's client is put back afterwards: a model's own module may want the real one.
    hub = sys.modules.get("huggingface_hub")
    sys.modules["huggingface_hub"] = _stand_in("huggingface_hub", "snapshot_download")
    try:
        importlib.import_module("mlx_lm.utils")
    finally:
        del sys.modules["huggingface_hub"]
        if hub is not None:
            sys.modules["huggingface_hub"] = hub


def _stand_in(name: str, *callables: str) -> ModuleType:
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise RuntimeError(f"a worker has no {name}: text stays with the controller")

    module = ModuleType(name)
    for attribute in callables:
        setattr(module, attribute, refuse)
    return module
