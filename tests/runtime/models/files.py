"""Writes small model folders, byte by byte, so that tests can also write wrong ones."""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Shapes = dict[str, tuple[int, ...]]

WIDTH_BYTES = 2
"""Of the BF16 that these models are made of."""


def header(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The header of a file with these tensors, back to back."""
    entries: dict[str, Any] = {"__metadata__": {"format": "mlx", "dtype": "not one", "shape": "none"}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + prod(shape) * WIDTH_BYTES
        entries[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    return entries


def file_bytes(entries: Any, data_bytes: int) -> bytes:
    """A whole file with ``entries`` as its header."""
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(data_bytes)


def write_weights(path: Path, shapes: Shapes) -> None:
    path.write_bytes(file_bytes(header(shapes), sum(map(prod, shapes.values())) * WIDTH_BYTES))


def write_model(folder: Path, shapes: Shapes, files: int = 1, **config: Any) -> Path:
    """A model folder; with an index if it has several files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    if files == 1:
        write_weights(folder / "model.safetensors", shapes)
        return folder
    names = list(shapes)
    weight_map: dict[str, str] = {}
    for number in range(files):
        file_name = f"model-{number + 1:05d}-of-{files:05d}.safetensors"
        part = {name: shapes[name] for name in names[number::files]}
        write_weights(folder / file_name, part)
        weight_map |= dict.fromkeys(part, file_name)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def decoder(prefix: str, layers: int) -> Shapes:
    """Layers of different sizes: layer ``n`` has ``20 * (n + 1)`` bytes in two tensors."""
    shapes: Shapes = {}
    for layer in range(layers):
        shapes[f"{prefix}{layer}.self_attn.q_proj.weight"] = (layer + 1, 8)
        shapes[f"{prefix}{layer}.mlp.experts.7.down_proj.weight"] = (layer + 1, 2)
    return shapes
