"""Hidden states over MLX's own connections instead of the hops: its ring (TCP), one rank for each stage.

Headers still come over TLS, before the arrays they announce, so a receive is posted only when something is on its way:
no rank spins while it waits, and no two ranks can disagree about what comes next. The ring itself has no key and no
time limit (facts: a cut cable hangs for ever), so these ranks are ended, never rebuilt.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import mlx.core as mx

from runtime.engine.hop import HopError
from runtime.engine.tensors import MLX_DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.frames import CarriedArray
    from runtime.engine.handover import Carried


class MlxHops:
    """This stage's place in a ``world`` of all stages, in model order."""

    def __init__(self, world: mx.distributed.Group, received_limit_bytes: int) -> None:
        """No step may announce more than ``received_limit_bytes``; the plan says how large a hidden state can be."""
        self._world = world
        self._limit_bytes = received_limit_bytes

    def send(self, arrays: Carried) -> int:
        """Send to the next stage, in order; returns the bytes. Waits until the kernel has taken them."""
        for array in filter(_size, arrays.values()):
            mx.eval(mx.distributed.send(array, self._world.rank() + 1, group=self._world))
        return sum(array.nbytes for array in arrays.values())

    def receive(self, carried: Sequence[CarriedArray]) -> Carried:
        """What the stage before sent under these headers. Raises :class:`HopError` if they announce too much.

        Evaluated before any layer is launched: a graph on a GPU that waits for a peer meets Metal's watchdog.
        """
        sizes = [prod(header.shape) * MLX_DTYPES[header.dtype].size for header in carried]
        if sum(sizes) > self._limit_bytes:
            raise HopError(f"a step announces {sum(sizes)} bytes, more than this model can need")
        arrays: Carried = {}
        for header in carried:
            dtype = MLX_DTYPES[header.dtype]
            if prod(header.shape):
                array = mx.distributed.recv(header.shape, dtype, self._world.rank() - 1, group=self._world)
                mx.eval(array)
            else:
                array = mx.zeros(header.shape, dtype)
            arrays[header.name] = array
        return arrays


def _size(array: mx.array) -> int:
    return array.size
