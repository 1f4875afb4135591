"""Requests that wait for room. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.engine.frames import Submit

WAITING_LIMIT = 256


class Waiting:
    """At most 256 requests. Clients take turns, and each client's own requests keep their order.

    So whoever sends many at once waits behind their own, and others do not.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Submit]] = OrderedDict()
        self._numbers: set[int] = set()
        self.taken = 0
        """How many were taken so far."""

    def __contains__(self, request: int) -> bool:
        return request in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def is_full(self) -> bool:
        return len(self._numbers) >= WAITING_LIMIT

    def add(self, submit: Submit) -> None:
        """Queue a request."""
        self._clients.setdefault(submit.client, deque()).append(submit)
        self._numbers.add(submit.request)

    def first(self) -> Submit | None:
        """Whose turn it is. It keeps its turn until it is taken or removed, or large requests would wait for ever."""
        return next(iter(self._clients.values()))[0] if self._clients else None

    def take(self) -> None:
        """Take the first out; the next turn is another client's."""
        client, queue = next(iter(self._clients.items()))
        self._numbers.remove(queue.popleft().request)
        self.taken += 1
        if queue:
            self._clients.move_to_end(client)
        else:
            del self._clients[client]

    def remove(self, request: int) -> None:
        """Take one that waits out, wherever it is."""
        for client, queue in self._clients.items():
            submit = next((submit for submit in queue if submit.request == request), None)
            if submit is not None:
                queue.remove(submit)
                self._numbers.remove(request)
                if not queue:
                    del self._clients[client]
                return
