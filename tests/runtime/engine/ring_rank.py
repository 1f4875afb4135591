"""A rank of a real MLX ring that does one job after another: ``python -m tests.runtime.engine.ring_rank``.

A line of JSON comes in for each job and one goes out. See :class:`tests.runtime.engine.ring.Ring` for the jobs.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from runtime.engine.without_text import import_mlx_lm

import_mlx_lm()

import mlx.core as mx  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402

from runtime.engine.tensor_parallel import shard  # noqa: E402
from tests.runtime.engine.tiny import build, distance, greedy, margin, round_differently  # noqa: E402


def compare(config: dict[str, Any], group: mx.distributed.Group) -> dict[str, Any]:
    """The model that ``group`` shares against the whole model on this rank."""
    model = build(config)
    sizes = _sizes(model)
    tokens, logits = greedy(model)
    shard(model, group)
    mx.eval(model.parameters())
    shared_tokens, shared_logits = greedy(model)
    held = sum(_sizes(model).values())
    model = build(config)
    round_differently(model)
    return {
        "difference": distance(logits, shared_logits),
        "rounding": distance(logits, greedy(model)[1]),
        "margin": margin(logits),
        "tokens": tokens,
        "shared_tokens": shared_tokens,
        "sizes": sizes,
        "held_bytes": held,
    }


def _sizes(model: Any) -> dict[str, int]:
    parameters: Any = tree_flatten(model.parameters())
    return {name: array.nbytes for name, array in parameters}


def load(folder: str, group: mx.distributed.Group) -> dict[str, Any]:
    """The model in ``folder`` as a worker loads it: what it holds."""
    from runtime.engine.load import build_stage, held_bytes

    before = held_bytes()
    layer_count = json.loads((Path(folder) / "config.json").read_text())["num_hidden_layers"]
    stage = build_stage(Path(folder), 0, layer_count, group)
    list(stage.load())
    stage.warm_up()
    return {"held_bytes": held_bytes() - before}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a model prints
    group = mx.distributed.init(strict=True, backend="ring")
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = compare(job["config"], group) if "config" in job else load(job["folder"], group)
        except Exception as error:  # noqa: BLE001 - the test says what went wrong
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        mx.clear_cache()


if __name__ == "__main__":
    main()
