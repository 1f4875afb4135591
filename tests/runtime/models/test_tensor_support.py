"""The list of types for tensor mode is that of the installed mlx-lm."""

from __future__ import annotations

import json
import subprocess
import sys

from runtime.models.tensor_support import SHARDED_ALIASES, SHARDED_TYPES

INSPECT = """
import importlib, json, pkgutil
import mlx_lm.models
from mlx_lm.utils import MODEL_REMAPPING

sharded = []
for module in pkgutil.iter_modules(mlx_lm.models.__path__):
    if module.name != "olmo":  # its import ends the process where ai2-olmo is not installed
        model = getattr(importlib.import_module(f"mlx_lm.models.{module.name}"), "Model", None)
        if hasattr(model, "shard"):
            sharded.append(module.name)
print(json.dumps([sharded, MODEL_REMAPPING]))
"""


def test_the_list_is_what_mlx_lm_can_shard():
    done = subprocess.run([sys.executable, "-c", INSPECT], capture_output=True, check=True, timeout=100)
    sharded, remapping = json.loads(done.stdout.splitlines()[-1])
    assert set(sharded) == SHARDED_TYPES
    assert {alias for alias, target in remapping.items() if target in sharded} == SHARDED_ALIASES
