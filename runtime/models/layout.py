"""Layers and bytes of a model folder, read from its safetensors headers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.errors import PomonaError
from runtime.models.config import read_config
from runtime.models.tensor_names import Part, part_of, split_layers
from runtime.models.tensor_support import TENSOR_PARALLEL_TYPES
from runtime.models.weight_files import read_tensors

if TYPE_CHECKING:
    from pathlib import Path


class ModelLayout(msgspec.Struct, frozen=True):
    """What a plan has to know of a model."""

    name: str
    model_type: str
    layer_bytes: tuple[int, ...]
    """Weights of each decoder layer, in model order."""
    embedding_bytes: int
    """Token embedding: held by the first stage, and by the last too when it is tied to the head."""
    head_bytes: int
    """Final norm and output head, without a tied embedding: held by the last stage."""
    tied_embedding: bool
    attention_heads: int
    key_value_heads: int
    context_tokens: int
    """The longest sequence that the model was made for."""
    tensor_parallel: bool
    """Whether the layers of this model type can be shared by the ranks of a tensor group."""

    @property
    def weight_bytes(self) -> int:
        return sum(self.layer_bytes) + self.embedding_bytes + self.head_bytes


def read_layout(folder: Path) -> ModelLayout:
    """The layout of the model in ``folder``: a few reads of kilobytes, no weights.

    Vision and audio towers and multi-token prediction are left out, as mlx-lm leaves them out. Tensors whose place is
    not known are counted on the last stage. Raises :class:`PomonaError` if the folder holds no complete model.
    """
    folder = folder.absolute()
    config = read_config(folder)
    name = model_name(folder)
    tensor_bytes = {tensor: info.byte_count for tensor, info in read_tensors(folder).items()}
    parts = split_layers(tensor_bytes, config.layer_count)
    if parts is None:
        raise PomonaError(f"The weights of {name} have no layers that Pomona can tell apart, so it cannot be split.")
    layers, outside = parts
    if missing := [index for index, count in enumerate(layers) if not count]:
        raise PomonaError(
            f"{name} should have {config.layer_count} layers, but its files hold nothing of {_layers(missing)}: "
            "fetch the model again."
        )
    sizes: dict[Part, int] = dict.fromkeys(("embedding", "head", "other", "left out"), 0)
    for tensor, count in outside.items():
        sizes[part_of(tensor)] += count
    tied = config.tied is True or not sizes["head"]
    return ModelLayout(
        name=name,
        model_type=config.model_type,
        layer_bytes=tuple(layers),
        embedding_bytes=sizes["embedding"],
        head_bytes=sizes["other"] + (0 if tied else sizes["head"]),  # mlx-lm drops the copy of a tied embedding
        tied_embedding=tied,
        attention_heads=config.attention_heads,
        key_value_heads=config.key_value_heads,
        context_tokens=config.context_tokens,
        tensor_parallel=config.model_type in TENSOR_PARALLEL_TYPES and config.attention_heads > 0,
    )


def model_name(folder: Path) -> str:
    """A model's name for people: its folder's, or the repository's for a snapshot in the Hugging Face cache.

    There the folder is ``models--<owner>--<name>/snapshots/<commit>``.
    """
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        return folder.parent.parent.name.rpartition("--")[2]
    return folder.name


def _layers(indices: list[int]) -> str:
    if len(indices) == 1:
        return f"layer {indices[0]}"
    shown = ", ".join(map(str, indices[:5]))
    return f"layers {shown}" + (f" and {len(indices) - 5} more" if len(indices) > 5 else "")
