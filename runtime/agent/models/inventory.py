"""What a list of models says of each."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.agent.models.messages import HeldModel
from runtime.errors import PomonaError
from runtime.models.layout import manifest_layout
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from runtime.agent.models.library import Copy, Library
    from runtime.models.manifest import Manifest


def held_models(library: Library) -> list[HeldModel]:
    """Every model on this node that can be run."""
    found = []
    for copy in library.all():
        with contextlib.suppress(PomonaError):
            found.append(held_model(copy))
    return found


def held_model(copy: Copy) -> HeldModel:
    """One copy. Raises :class:`PomonaError` if mlx-lm cannot run it."""
    held = [part for part in model_parts(copy.manifest).values() if copy.reader.holds(part)]
    return msgspec.structs.replace(
        described(copy.manifest),
        layers_held=sum(part.name.startswith("layer-") for part in held),
        disk_bytes=copy.stored.disk_bytes() if copy.stored else sum(f.byte_count for f in copy.manifest.weight_files),
        is_ours=copy.stored is not None,
    )


def described(manifest: Manifest) -> HeldModel:
    """A model of which nothing is here. Raises :class:`PomonaError` if mlx-lm cannot run it."""
    layout = manifest_layout(manifest)
    sizes = tuple(size for size, refusal in enumerate(layout.tensor_refusals, 2) if not refusal)
    return HeldModel(
        name=manifest.name,
        repository=manifest.repository,
        revision=manifest.revision,
        layer_count=len(layout.layer_bytes),
        layers_held=0,
        disk_bytes=0,
        is_ours=False,
        quantization=quantization(manifest),
        context_tokens=layout.context_tokens,
        pipeline_refusal=layout.pipeline_refusal,
        tensor_sizes=sizes,
        tensor_refusal="" if sizes else next(iter(layout.tensor_refusals), ""),
        weight_bytes=layout.weight_bytes,
    )


def quantization(manifest: Manifest) -> str:
    """In a word or two: ``4 bits``, or the dtype of the weights."""
    settings = manifest.settings
    for name in ("quantization", "quantization_config"):
        given: Any = settings.get(name)
        if isinstance(given, dict):
            bits = given.get("bits")
            return f"{bits} bits" if isinstance(bits, int) else str(given.get("quant_method", "quantized"))[:20]
    text: Any = settings.get("text_config")
    sources = [settings, text] if isinstance(text, dict) else [settings]
    dtypes = [source.get(name) for source in sources for name in ("dtype", "torch_dtype")]
    return next((str(dtype)[:20] for dtype in dtypes if dtype), "not quantized")
