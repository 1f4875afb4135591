"""What the support matrix says of each model type, and the page that it is written on."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.models.pipeline_mode import pipeline_refusal, unknown_model
from runtime.models.tensor_mode.refusal import tensor_refusal
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import SPLITS

if TYPE_CHECKING:
    from tests.matrix.variant import Config

PAGE = Path(__file__).parents[2] / "docs" / "support-matrix.md"
NEEDS_METAL = ("bitnet", "muse_spark")
"""Their kernels exist for Metal alone; checked by structure (without_metal.py)."""

IDENTICAL = "bit-identical"
_GROUP_SIZES = (2, 3, 4)
_ENDINGS = ("; use pipeline mode.", "; choose another number of nodes or pipeline mode.")


def refusal(config: Config) -> str:
    """Why a configuration cannot be split, as a person would read it."""
    return unknown_model(config, "It") or pipeline_refusal(config, "It")


def pipeline_column(model_type: str, measured: dict[str, str]) -> str:
    """What was ``measured`` of each variant, as one cell."""
    if model_type in NEEDS_METAL:
        return "by structure; its numbers need Metal"
    said = {variant: measured.get(variant, "not measured") for variant in CONFIGS[model_type]}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{variant}: {words}" for variant, words in said.items())


def tensor_column(model_type: str) -> str:
    """Group sizes that can share the layers of the tiny configurations, or why none can."""
    cells = {variant: _groups(config) for variant, config in CONFIGS[model_type].items()}
    common, _count = Counter(cells.values()).most_common(1)[0]
    others = [f"{variant}: {cell}" for variant, cell in cells.items() if cell != common]
    return "; ".join([common, *others])


def page(measured: dict[str, dict[str, str]]) -> str:
    """The whole page, from what was measured of each type's variants."""
    cells = [(pipeline_column(name, measured.get(name, {})), tensor_column(name)) for name in CONFIGS]
    rows = [
        f"| {name} | {', '.join(its)} | {pipeline} | {tensor} |"
        for (name, its), (pipeline, tensor) in zip(CONFIGS.items(), cells, strict=True)
    ]
    identical = sum(IDENTICAL in pipeline for pipeline, _tensor in cells)
    shared = sum(tensor[0].isdigit() for _pipeline, tensor in cells)
    splits = ", ".join("-".join(map(str, split)) for split in SPLITS)
    return f"""# Support matrix

{versions()}
Every model type of mlx-lm is there, as tiny models of seven layers with random weights (`tests/matrix/`).

**Pipeline:** {identical} of {len(rows)} types. Each stage is loaded by itself from the model's folder and run as a
worker runs it, over the splits {splits}; the prompt goes in by two chunks, then tokens are decoded.
*{IDENTICAL.capitalize()}* means that all logits have the very bits that mlx-lm alone computes with the whole model.
A boundary may lie between any two layers.

**Tensor:** {shared} types. The column has the sizes out of 2, 3 and 4 ranks that can share the layers of these tiny
models, which have 4 attention heads and mostly 2 key-value heads. For a real model they follow from its `config.json`.

| type | variants | pipeline | tensor |
| --- | --- | --- | --- |
{chr(10).join(rows)}
"""


def versions() -> str:
    """What the page was made with."""
    return f"Written by `make matrix` for mlx-lm {version('mlx-lm')} and mlx {version('mlx')}, not by hand."


def rows_of(text: str) -> dict[str, str]:
    """The page's rows by model type: what an upgrade of mlx-lm must not change unnoticed."""
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return {line.split("|")[1].strip(): line for line in lines}


def _groups(config: Config) -> str:
    reasons = [tensor_refusal(config, size, "It") for size in _GROUP_SIZES]
    sizes = [str(size) for size, reason in zip(_GROUP_SIZES, reasons, strict=True) if reason is None]
    if sizes:
        return ", ".join(sizes)
    words = reasons[0] or ""
    for ending in _ENDINGS:
        words = words.removesuffix(ending)
    return f"no: {words.removeprefix('It ')}"
