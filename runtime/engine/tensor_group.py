"""The ranks of a stage that share its layers: an MLX world of their own over its ring (TCP).

The ring has no key, no time limit and no framing (facts: a stranger that connects first is taken for a neighbour; an
accept waits for ever), so it gets a fresh port for each job, exists only inside a stage, and is watched from outside.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import mlx.core as mx

from runtime.engine import lifeline
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.hop import Address

_JOIN_SECONDS = 4.0
"""Every rank has just greeted its leader, so all begin at once: 0.2 s, and 2.4 s where nine processes want two cores.
MLX itself would dial for 31 s and accept for ever."""


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def join(addresses: Sequence[Address], rank: int) -> mx.distributed.Group:
    """Connect the ring of ``addresses``, in rank order. Raises :class:`PomonaError` if it does not come up whole.

    The process ends by itself if the ring is not connected within 4 s.
    """
    hostfile = Path(tempfile.mkdtemp(prefix="pomona-ring-")) / "hosts.json"
    hostfile.write_text(json.dumps([[str(address)] for address in addresses]))
    os.environ["MLX_HOSTFILE"] = str(hostfile)
    os.environ["MLX_RANK"] = str(rank)
    try:
        with lifeline.limit_seconds(_JOIN_SECONDS):
            group = mx.distributed.init(strict=True, backend="ring")
            # Whoever connects is taken for a neighbour: only a sum over all ranks shows that they are.
            count = mx.distributed.all_sum(mx.array(1), group=group).item()
    except RuntimeError as error:
        raise PomonaError("The nodes of this tensor group could not connect to each other; start again.") from error
    finally:
        hostfile.unlink()
        hostfile.parent.rmdir()
    if count != len(addresses) or group.size() != len(addresses):
        raise PomonaError(
            f"The tensor group of {len(addresses)} nodes did not come up whole: something else connected to its ports, "
            "or a node is missing; start again."
        )
    return group
