"""Layers and bytes of a model folder, read from its safetensors headers alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.errors import PomonaError
from runtime.models.config import CONFIG_NAME, model_config, read_settings
from runtime.models.experts import active_bytes, experts_per_token
from runtime.models.folder_names import model_name
from runtime.models.layer_figures import ModelFigures, figures_from_config
from runtime.models.manifest import MANIFEST_NAME, stored_manifest
from runtime.models.pipeline_mode import pipeline_refusal, unknown_model
from runtime.models.tensor_mode.bytes import is_divided
from runtime.models.tensor_mode.refusal import divides_head, tensor_refusals
from runtime.models.tensor_names import Part, layer_places, part_of
from runtime.models.weight_files import read_tensors

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from runtime.models.manifest import Manifest
    from runtime.models.safetensors_header import TensorInfo


_MODELOPT_NAME = "hf_quant_config.json"
"""NVIDIA's way to say how a model is quantized (``mlx_lm.utils.load_model`` reads it too)."""


_ADAPTER_NAME = "adapter_config.json"
"""What mlx-lm and PEFT write beside the weights of a LoRA; loading the model alone would leave it out in silence."""


_PLAIN_DTYPES = ("F32", "BF16", "F16")


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
    layer_divided_bytes: tuple[int, ...]
    """What the ranks of a tensor group divide of each layer; the rest of it each of them holds."""
    head_divided_bytes: int
    """The same of the output head."""
    tensor_refusals: tuple[str, ...]
    """For groups of 2, 3, … ranks: the sentence that says why they cannot share each layer, empty if they can."""
    pipeline_refusal: str = ""
    """The sentence that says why the model cannot be split into stages; empty if it can, then between any layers."""
    first_alone_bytes: int = 0
    """Of ``embedding_bytes``, what only the first stage holds, even of a tied embedding: further tables and
    projections of the tokens, which later stages are sent the results of."""
    layer_active_bytes: tuple[int, ...] = ()
    """Of each layer, what one token reads: less than all of it where a router picks experts. Empty if not known."""
    figures: ModelFigures | None = None
    """What a token costs beside reading weights; None if nothing is known of it."""

    @property
    def weight_bytes(self) -> int:
        return sum(self.layer_bytes) + self.embedding_bytes + self.head_bytes


def read_layout(folder: Path) -> ModelLayout:
    """The layout of the model in ``folder``: a few reads of kilobytes, no weights.

    Vision and audio towers and multi-token prediction are left out, as mlx-lm leaves them out. Tensors whose place is
    not known are counted on the last stage. Raises :class:`PomonaError` if the folder holds no complete model.
    """
    folder = folder.absolute()
    if (folder / MANIFEST_NAME).is_file():
        return manifest_layout(stored_manifest(folder))
    settings = read_settings(folder)
    name = model_name(folder)
    refuse_unknown(settings, name)
    beside = [file for file in (_MODELOPT_NAME, _ADAPTER_NAME) if (folder / file).exists()]
    return layout_of(name, settings, read_tensors(folder), beside, str(folder / CONFIG_NAME))


def manifest_layout(manifest: Manifest) -> ModelLayout:
    """The layout of a model of which perhaps only the manifest is here."""
    tensors: dict[str, TensorInfo] = {}
    for its in manifest.file_tensors():
        tensors |= its
    return layout_of(manifest.name, manifest.settings, tensors, {file.name for file in manifest.small_files})


def refuse_unknown(settings: Mapping[str, Any], name: str) -> None:
    """Raise :class:`PomonaError` if ``config.json`` says so much that the model ``name`` cannot be run."""
    if reason := unknown_model(settings, name):
        raise PomonaError(reason)


def layout_of(
    name: str,
    settings: dict[str, Any],
    tensors: Mapping[str, TensorInfo],
    beside: Collection[str] = (),
    source: str = CONFIG_NAME,
) -> ModelLayout:
    """The layout of a model whose files are anywhere. Pure.

    ``settings`` is what ``config.json`` says, and ``source`` names it in errors; ``tensors`` are those of all weight
    files; ``beside`` names the files next to them. Raises :class:`PomonaError` as :func:`read_layout` does.
    """
    config = model_config(settings, source)
    refuse_unknown(settings, name)
    if _ADAPTER_NAME in beside:
        raise PomonaError(f"{name} has an adapter beside its weights, which Pomona does not apply: fuse it first.")
    layers, outside = _by_layer(name, tensors, config.layer_count)
    sizes: dict[Part, int] = dict.fromkeys(("embedding", "beside embedding", "head", "other", "left out"), 0)
    for tensor in outside:
        sizes[part_of(tensor)] += tensors[tensor].byte_count
    tied = config.tied is True or not sizes["head"]
    if _MODELOPT_NAME in beside:  # its settings count as if they stood in the configuration
        settings = {"quantization_config": {"quant_method": "modelopt"}, **settings}
    visited = experts_per_token(settings)
    return ModelLayout(
        name=name,
        model_type=config.model_type,
        layer_bytes=tuple(sum(tensor.byte_count for tensor in its.values()) for its in layers),
        embedding_bytes=sizes["embedding"] + sizes["beside embedding"],
        head_bytes=sizes["other"] + (0 if tied else sizes["head"]),  # mlx-lm drops the copy of a tied embedding
        tied_embedding=tied,
        attention_heads=config.attention_heads,
        key_value_heads=config.key_value_heads,
        context_tokens=config.context_tokens,
        layer_divided_bytes=tuple(
            sum(tensor.byte_count for inside, tensor in its.items() if is_divided(inside)) for its in layers
        ),
        head_divided_bytes=sizes["head"] if not tied and divides_head(settings) else 0,
        tensor_refusals=tensor_refusals(settings, name),
        pipeline_refusal=pipeline_refusal(settings, name),
        first_alone_bytes=sizes["beside embedding"],
        layer_active_bytes=tuple(active_bytes(its.items(), visited) for its in layers),
        figures=figures_from_config(settings, len(layers), _plain_dtype(layers)),
    )


def _plain_dtype(layers: Sequence[Mapping[str, TensorInfo]]) -> str:
    """The commonest dtype of the numbers of layers that are not packed into integers."""
    found: Counter[str] = Counter()
    for its in layers:
        for tensor in its.values():
            if tensor.dtype in _PLAIN_DTYPES:
                found[tensor.dtype] += tensor.byte_count
    return found.most_common(1)[0][0] if found else "BF16"


def _by_layer(
    name: str, tensors: Mapping[str, TensorInfo], layer_count: int
) -> tuple[list[dict[str, TensorInfo]], list[str]]:
    """The tensors of each layer by their names inside it, and the names of those outside of layers."""
    places = layer_places({tensor: info.byte_count for tensor, info in tensors.items()}, layer_count)
    if places is None:
        raise PomonaError(f"The weights of {name} have no layers that Pomona can tell apart, so it cannot be split.")
    layers: list[dict[str, TensorInfo]] = [{} for _ in range(layer_count)]
    for tensor, (layer, inside) in places.items():
        if layer < layer_count:  # beyond are those of multi-token prediction
            layers[layer][inside] = tensors[tensor]
    if missing := [index for index, its in enumerate(layers) if not any(tensor.byte_count for tensor in its.values())]:
        raise PomonaError(
            f"{name} should have {layer_count} layers, but its files hold nothing of {_layers(missing)}: "
            "fetch the model again."
        )
    return layers, [tensor for tensor in tensors if tensor not in places]


def _layers(indices: list[int]) -> str:
    if len(indices) == 1:
        return f"layer {indices[0]}"
    shown = ", ".join(map(str, indices[:5]))
    return f"layers {shown}" + (f" and {len(indices) - 5} more" if len(indices) > 5 else "")
