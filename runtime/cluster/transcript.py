"""What a session was asked and has answered, for a front end that comes later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.cluster.messages import Answered, Finished, Rejected, Text

if TYPE_CHECKING:
    from runtime.cluster.messages import Chat, ServerMessage

KEPT_REQUESTS = 100


@dataclass(slots=True)
class _Entry:
    chat: Chat
    pieces: list[str] = field(default_factory=list)
    finished: Finished | None = None
    error: str = ""


class Transcript:
    """The newest hundred requests of front ends."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def begin(self, chat: Chat) -> None:
        """Someone asks."""
        self._entries.setdefault(chat.request_id, _Entry(chat))
        while len(self._entries) > KEPT_REQUESTS:
            del self._entries[next(iter(self._entries))]

    def take(self, message: ServerMessage) -> None:
        """What front ends are told."""
        if not isinstance(message, Text | Finished | Rejected):
            return
        entry = self._entries.get(message.request_id)
        if entry is None:
            return
        match message:
            case Text():
                entry.pieces.append(message.text)
            case Finished():
                entry.finished = message
            case Rejected():
                entry.error = message.reason

    def answered(self) -> list[Answered]:
        """Everything so far, oldest first."""
        return [
            Answered(entry.chat, "".join(entry.pieces), entry.finished, entry.error) for entry in self._entries.values()
        ]
