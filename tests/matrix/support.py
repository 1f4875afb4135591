"""What the support matrix says of each model type, and the page that it is written on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.models.pipeline_mode import pipeline_refusal, unknown_model
from runtime.models.tensor_mode.refusal import tensor_refusal
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import SPLITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.matrix.variant import Config

PAGE = Path(__file__).parents[2] / "docs" / "support-matrix.md"
NEEDS_METAL = ("bitnet", "muse_spark")
"""Their kernels exist for Metal alone; checked by structure (without_metal.py)."""

IDENTICAL = "bit-identical"
_ENDINGS = ("; use pipeline mode.", "; choose another number of nodes or pipeline mode.")


def refusal(config: Config) -> str:
    """Why a configuration cannot be split, as a person would read it."""
    return unknown_model(config, "It") or pipeline_refusal(config, "It")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the matrix found, by model type and variant."""

    stages: dict[str, dict[str, str]] = field(default_factory=partial(defaultdict, dict))
    """Of pipelines, in words."""
    shares: dict[str, dict[str, set[int]]] = field(default_factory=partial(defaultdict, partial(defaultdict, set)))
    """Of tensor groups: how many ranks computed what the whole model computes."""


def pipeline_column(model_type: str, found: Mapping[str, str]) -> str:
    """What was ``found`` of each variant, as one cell."""
    if model_type in NEEDS_METAL:
        return "by structure; its numbers need Metal"
    said = {variant: found.get(variant, "not measured") for variant in CONFIGS[model_type]}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{variant}: {words}" for variant, words in said.items())


def tensor_column(model_type: str, found: Mapping[str, set[int]]) -> str:
    """How many ranks shared it and computed the same, or why none can."""
    sizes = sorted(set[int]().union(*found.values()))
    refused = {
        variant: f"no: {_reason(config)}" for variant, config in CONFIGS[model_type].items() if variant not in found
    }
    if not sizes:
        return next(iter(refused.values()))
    return "; ".join([", ".join(map(str, sizes)), *(f"{variant}: {words}" for variant, words in refused.items())])


def page(found: Measured) -> str:
    """The whole page, from what was measured."""
    cells = [
        (pipeline_column(name, found.stages.get(name, {})), tensor_column(name, found.shares.get(name, {})))
        for name in CONFIGS
    ]
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
A boundary may lie between any two layers. Each kind of layer also runs over worker processes.

**Tensor:** {shared} types. The column has the numbers of ranks that shared the layers over MLX's ring, and chose the
tokens of the whole model from logits that differ by rounding alone: every variant on two ranks, every type on three,
every kind of layer on four. Where the tiny model has too few heads or features for so many ranks, one with more was
taken. Which numbers can share a real model follows from its `config.json`; the others are refused.

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


def changed_rows(before: str, after: str) -> list[str]:
    """The model types whose rows differ between two pages."""
    old, new = rows_of(before), rows_of(after)
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _reason(config: Config) -> str:
    words = tensor_refusal(config, 2, "It") or "not measured"
    for ending in _ENDINGS:
        words = words.removesuffix(ending)
    return words.removeprefix("It ")
