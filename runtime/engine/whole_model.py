"""The whole model in one process, by mlx-lm alone: what a split is compared with.

    python -m runtime.engine.whole_model REQUEST.json RESULT.npz

No stage, cache or step of ours is involved, so that no mistake of ours can be on both sides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import msgspec
import numpy as np
from mlx.utils import tree_map

from runtime.engine import lifeline
from runtime.engine.whole_request import WholeRequest
from runtime.engine.without_text import import_mlx_lm

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mlx.nn as nn


def run(request: WholeRequest) -> dict[str, np.ndarray[Any, Any]]:
    """Logits before each new token, shape (tokens, vocabulary), and the likeliest token of each."""
    from mlx_lm.utils import load_model  # may be a stand-in without its text half

    model, _config = load_model(Path(request.model_folder))
    logits, tokens = _logits(model, request)
    result = {"logits": logits, "tokens": tokens}
    if request.rounded:
        _round_otherwise(model)
        result["rounded_logits"] = _logits(model, request)[0]
    return result


def _logits(model: nn.Module, request: WholeRequest) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    from mlx_lm.models.cache import make_prompt_cache  # may be a stand-in without its text half

    cache = make_prompt_cache(model)
    steps = [*request.chunks, *((token,) for token in request.decoded)]
    seen, tokens = [], []
    for number, step in enumerate(steps):
        logits = model(mx.array([step]), cache=cache)[0, -1]
        mx.eval(logits)
        if number >= len(request.chunks) - 1:
            seen.append(np.array(logits.astype(mx.float32)))
            tokens.append(mx.argmax(logits - mx.logsumexp(logits)).item())  # as mlx-lm's generate_step chooses
    return np.stack(seen), np.array(tokens)


def _round_otherwise(model: nn.Module) -> None:
    """Move every weight by about half of the last bit of its dtype."""
    mx.random.seed(0)

    def moved(array: mx.array) -> mx.array:
        if not mx.issubdtype(array.dtype, mx.floating):
            return array
        unit = mx.finfo(array.dtype).eps / 2
        noise = 1 + unit * mx.random.normal(array.shape)
        return (array.astype(mx.float32) * noise).astype(array.dtype)

    model.update(tree_map(moved, model.parameters()))


def main(arguments: Sequence[str]) -> int:
    """The command line. What went wrong is one sentence on standard error."""
    source, target = map(Path, arguments)
    lifeline.die_with_parent(os.getppid())
    import_mlx_lm()
    try:
        result = run(msgspec.json.decode(source.read_bytes(), type=WholeRequest))
    except Exception as error:  # noqa: BLE001  whatever a model's code raises
        sys.stderr.write(f"mlx-lm alone does not run the whole model here ({type(error).__name__}: {error}).\n")
        return 1
    np.savez(target, allow_pickle=False, **result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
