"""What a pipeline cannot go on with, told when its true cause has had time to come."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.crew import Crew
    from runtime.cluster.messages import Failed

GRACE_SECONDS = 0.7
"""Ranks that see a neighbour go report at once; the true cause (an exit, a lost node) may come a moment later."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the pipeline cannot go on as it is, and what is lost; only a hop is where neither of the two is named."""

    cause: Failed
    lost_worker: int | None = None
    """The number of one worker."""
    lost_node_id: str | None = None
    """A node with all of its workers."""
    is_mendable: bool = True
    """Whether a pipeline on what is left may do better."""


class Troubles:
    """Hands troubles of the pipeline that ``crew`` runs to ``on_trouble``, on the loop that tells of them."""

    def __init__(self, crew: Crew, on_trouble: Callable[[Trouble], None]) -> None:
        self._crew = crew
        self._on_trouble = on_trouble

    def tell(self, trouble: Trouble) -> None:
        """Hand it on now."""
        self._on_trouble(trouble)

    def tell_late(self, trouble: Trouble) -> None:
        """Hand on what may be but another's view of a loss after a moment, if that loss was not told by then."""
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._after_grace, trouble, self._crew.epoch)

    def _after_grace(self, trouble: Trouble, epoch: int) -> None:
        number = trouble.lost_worker
        if epoch < self._crew.epoch:
            if number is not None and self._crew.rank(number) is not None:  # it was to stay in the pipeline that came
                self._on_trouble(trouble)
        elif not self._crew.is_leaving:
            self._on_trouble(trouble)
        elif number is not None:  # the pipeline is about to be rebuilt
            self._crew.lose(number)
