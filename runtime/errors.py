"""The one exception that a person may meet."""

from __future__ import annotations


class PomonaError(Exception):
    """Something a person can act on.

    The message is one plain sentence: what is wrong, where, and what to do. The technical cause, if any,
    travels as ``__cause__`` and belongs in the log, not on the screen.
    """
