"""A checkpoint in several files, and which stage needs which of its tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from tests.matrix.configs import CONFIGS
from tests.matrix.staged import saved

if TYPE_CHECKING:
    from pathlib import Path

FILES = 4


def save_sharded(folder: Path) -> Path:
    """A DeepSeek-V3.2 in four files, every layer scattered over all of them."""
    saved(CONFIGS["deepseek_v32"]["experts"], folder)
    loaded: Any = mx.load(str(folder / "model.safetensors"))
    weights = sorted(loaded.items())
    mx.eval([array for _name, array in weights])
    (folder / "model.safetensors").unlink()
    index: dict[str, str] = {}
    for number in range(FILES):
        name = f"model-{number + 1:05}-of-{FILES:05}.safetensors"
        part = dict(weights[number::FILES])
        mx.save_safetensors(str(folder / name), part)
        index |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return folder


def is_of(name: str, first: int, end: int, layers: int) -> bool:
    """Whether a tensor belongs to a stage."""
    if ".layers." in name:
        return first <= int(name.partition(".layers.")[2].partition(".")[0]) < end
    return first == 0 if "embed_tokens" in name else end == layers
