"""A model's stages in one process, against the whole model by mlx-lm alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import msgspec
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

from runtime.engine import tensors
from runtime.engine.frames import Open, Sampling, Step
from runtime.engine.load import build_stage
from runtime.engine.load import held_bytes as engine_held_bytes
from runtime.engine.random_model import save_random_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.variant import Config

Logits = list[np.ndarray[Any, np.dtype[np.float32]]]

SPLITS = [(3, 4), (1, 6), (6, 1), (2, 4, 1), (1, 1, 1, 4)]
"""Two, three and four stages, none of them even, with stages of one layer at both ends and between."""
PROMPT = tuple((7 * place * place + 11 * place + 3) % 128 for place in range(24))
CHUNKS = (PROMPT[:10], PROMPT[10:23], PROMPT[23:], (41,), (43,), (47,), (53,))
"""The prompt in two chunks and its last token, then decode. The second chunk is longer than any sliding window."""


UNASKED_BYTES = 4096
"""Tables that a model makes of numbers in its configuration, such as frequencies."""


def saved(config: Config, folder: Path) -> Path:
    """The configuration's model with random weights, as a folder."""
    save_random_model(config, folder)
    return folder


def whole(folder: Path) -> Logits:
    """The last position's logits after each chunk."""
    model, _config = load_model(folder)
    cache = make_prompt_cache(model)
    return [_floats(model(mx.array([chunk]), cache=cache)[0, -1]) for chunk in CHUNKS]


def in_stages(folder: Path | Sequence[Path], split: Sequence[int]) -> Logits:
    """The same by stages, each loaded by itself; what crosses a boundary does so as bytes. Each may have its folder."""
    edges = [sum(split[:index]) for index in range(len(split) + 1)]
    folders = [folder] * len(split) if isinstance(folder, Path) else folder
    stages = [build_stage(its, first, end, None) for its, (first, end) in zip(folders, pairwise(edges), strict=True)]
    for stage in stages:
        for _bytes in stage.load():
            pass
        stage.warm_up()
        stage.open(Open(0, Sampling(report_logits=True)))
    seen: Logits = []
    position = 0
    for number, chunk in enumerate(CHUNKS):
        step = Step(number, (0,), (position,), chunk, sample=True)
        carried, data = tensors.to_payload({})
        for stage in stages:
            if not number % 2:
                stage.build_ahead()  # as a rank does that waits; those in between find nothing built
            its = msgspec.structs.replace(step, carried=carried)
            result = stage.run_built(its, bytes(data))
            if result is None:
                result = stage.run(its, tensors.from_payload(bytes(data), carried))
            carried, data = tensors.to_payload(result.carried)
            seen += [np.frombuffer(row, np.float32) for row in result.logits]
        position += len(chunk)
    return seen


def held_bytes(folder: Path, first: int, end: int) -> int:
    """What a stage has allocated once it is warm; asserts that it reads nothing before it is asked to load."""
    before = engine_held_bytes()
    stage = build_stage(folder, first, end, None)
    assert engine_held_bytes() - before < UNASKED_BYTES, "weights were read before the stage was asked to load"
    for _bytes in stage.load():
        pass
    stage.warm_up()
    return engine_held_bytes() - before


def _floats(logits: mx.array) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(logits.astype(mx.float32))
