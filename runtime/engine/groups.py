"""Which requests decode in one step.

A group keeps its members from step to step, because moving a sequence from one batch of caches to another copies it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container


@dataclass(slots=True, eq=False)
class Group:
    """Requests that decode together; while a step is in flight, those that come and go wait for its end."""

    members: list[int] = field(default_factory=list)
    in_flight: bool = False


class Groups:
    """All requests that decode. Without ``can_batch`` every one is a group of its own."""

    def __init__(self, *, can_batch: bool) -> None:
        self._can_batch = can_batch
        self._groups: list[Group] = []
        self._joining: list[int] = []

    def __contains__(self, request: int) -> bool:
        return request in self._joining or any(request in group.members for group in self._groups)

    def is_in_flight(self, request: int) -> bool:
        """Whether a step that takes a token of ``request`` has not come back."""
        return any(group.in_flight and request in group.members for group in self._groups)

    @property
    def count(self) -> int:
        """Groups that have members, and one more when someone waits to join the first."""
        return len(self._groups) or int(bool(self._joining))

    @property
    def member_count(self) -> int:
        """Requests that decode or are about to."""
        return sum(len(group.members) for group in self._groups) + len(self._joining)

    def join(self, request: int) -> None:
        """A request is ready to decode."""
        self._joining.append(request)

    def leave(self, request: int) -> None:
        """A request is over; does nothing for one that does not decode."""
        if request in self._joining:
            self._joining.remove(request)
        for group in self._groups:
            if request in group.members:
                group.members.remove(request)

    def ready(self, wanted_count: int, held: Container[int] = ()) -> Group | None:
        """The group that has waited longest for its next step, after moving what has to move; None if all are away.

        ``wanted_count`` is how many groups there should be in flight; a group with a member in ``held`` waits.
        """
        if not self._can_batch:
            wanted_count = self.member_count
        self._groups = [group for group in self._groups if group.members or group.in_flight]
        idle = [group for group in self._groups if not group.in_flight]
        while idle and len(self._groups) > max(1, wanted_count):
            smallest = min(idle, key=lambda group: len(group.members))
            idle.remove(smallest)
            self._groups.remove(smallest)
            self._joining = smallest.members + self._joining
        self._place(idle, wanted_count)
        group = next((group for group in self._groups if _is_ready(group, held)), None)
        if group is not None:  # the next call finds the others first
            self._groups.remove(group)
            self._groups.append(group)
        return group

    def _place(self, idle: list[Group], wanted_count: int) -> None:
        """Give everyone who waits a group, and a missing group half of the largest idle one."""
        if len(self._groups) < wanted_count and not self._joining and idle:
            largest = max(idle, key=lambda group: len(group.members))
            if len(largest.members) > 1:
                half = (len(largest.members) + 1) // 2
                self._joining = largest.members[half:]
                del largest.members[half:]
        for request in self._joining[:]:
            if len(self._groups) < wanted_count:
                group = Group()
                self._groups.append(group)
                idle.append(group)
            elif idle:
                group = min(idle, key=lambda group: len(group.members))
            else:
                return
            group.members.append(request)
            self._joining.remove(request)


def _is_ready(group: Group, held: Container[int]) -> bool:
    return bool(group.members) and not group.in_flight and not any(member in held for member in group.members)
