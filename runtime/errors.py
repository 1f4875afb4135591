"""The one exception that a person may meet."""

from __future__ import annotations


class PomonaError(Exception):
    """Something a person can act on.

    The message is one plain sentence: what is wrong, where, and what to do. The technical cause, if any,
    travels as ``__cause__`` and belongs in the log, not on the screen.
    """


class NodeLost(PomonaError):
    """A node that has a part in something does not answer: a session may go on without it."""

    def __init__(self, reason: str, node_id: str) -> None:
        super().__init__(reason)
        self.node_id = node_id
