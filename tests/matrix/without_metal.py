"""Compares the stages of a model that needs Metal with the whole of it, its kernels replaced by a sum of their inputs.

    python -m tests.matrix.without_metal TYPE

So nothing is known of its numbers here, but every call, cache and array that crosses a boundary is the real one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _sum_of_inputs(*_names: Any, **_source: Any) -> Callable[..., list[mx.array]]:
    def kernel(
        *, inputs: Sequence[Any], output_shapes: Sequence[Any], output_dtypes: Sequence[mx.Dtype], **_grid: Any
    ) -> list[mx.array]:
        total = sum(mx.sin(item.astype(mx.float32)).mean() for item in inputs if isinstance(item, mx.array))
        return [
            mx.full(shape, mx.array(total)).astype(dtype)
            for shape, dtype in zip(output_shapes, output_dtypes, strict=True)
        ]

    return kernel


def main(model_type: str) -> int:
    """Exit status 0 if all splits of all variants equal the whole."""
    mx.fast.metal_kernel = _sum_of_inputs  # before a model's module makes its kernels
    from tests.matrix.configs import CONFIGS
    from tests.matrix.staged import SPLITS, in_stages, saved, whole

    with tempfile.TemporaryDirectory() as scratch:
        for variant, config in CONFIGS[model_type].items():
            folder = saved(config, Path(scratch, variant))
            expected = [logits.tobytes() for logits in whole(folder)]
            for split in SPLITS:
                if [logits.tobytes() for logits in in_stages(folder, split)] != expected:
                    sys.stderr.write(f"{model_type} ({variant}) differs over {split}\n")
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
