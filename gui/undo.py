"""One step of undo: from one arrangement to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.arrangement import Arrangement


class ArrangementCommand(QUndoCommand):
    """Key presses on one boundary in a row (of one ``merge_id``) are undone together."""

    def __init__(
        self,
        apply: Callable[[Arrangement], None],
        before: Arrangement,
        after: Arrangement,
        text: str,
        merge_id: int = -1,
    ) -> None:
        super().__init__(text)
        self._apply, self._before, self._after, self._merge_id = apply, before, after, merge_id

    def id(self) -> int:
        return self._merge_id

    def mergeWith(self, other: QUndoCommand) -> bool:  # noqa: N802  Qt's name
        if not isinstance(other, ArrangementCommand):
            return False
        self._after = other._after  # noqa: SLF001  of the same class
        return True

    def redo(self) -> None:
        self._apply(self._after)

    def undo(self) -> None:
        self._apply(self._before)
