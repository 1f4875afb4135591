"""Tensor parallel inside a stage: of every layer a rank keeps its share, and the shares' results are summed.

:func:`shard` is the way in. Whether the shares are equal is decided before, by ``runtime/models/tensor_mode``.
"""

from runtime.engine.tensor_parallel.sharing import shard

__all__ = ["shard"]
