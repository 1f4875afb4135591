"""What a window remembers for the next: chats, the model, the split of each, its place, its appearance, its settings.

One JSON file in the data folder, readable for its owner alone. One that cannot be read is set aside, not lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from discovery.files import locked, private_folder, read_small, set_aside, write_private
from gui.arrangement import KeptSplit  # msgspec resolves the annotation when it decodes
from gui.chat.book import Conversation  # msgspec resolves the annotation when it decodes
from gui.preferences import Preferences

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "window.json"
VERSION = 1
INTERRUPTED = "The window was closed before the answer was complete."
_MAX_FILE_BYTES = 64 << 20


class Kept(msgspec.Struct, frozen=True):
    """The file's content."""

    version: int = VERSION
    model_folder: str = ""
    appearance: str = "SYSTEM"
    geometry: bytes = b""
    """As Qt writes it."""
    panes: bytes = b""
    pane: str = ""
    """Which one was shown."""
    splits: dict[str, KeptSplit] = {}
    """By the model's name."""
    chats: tuple[Conversation, ...] = ()
    chat: int = 0
    """Which one was shown."""
    preferences: Preferences = Preferences()


def is_empty(folder: Path) -> bool:
    """Whether no window was ever open with this folder."""
    return not (folder / FILE_NAME).exists()


def load(folder: Path) -> Kept:
    """What is remembered in ``folder``; answers that were under way are marked as such. Raises :class:`OSError`."""
    path = folder / FILE_NAME
    try:
        kept = msgspec.json.decode(read_small(path, _MAX_FILE_BYTES), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (ValueError, RecursionError) as error:
        set_aside(path, "damaged", f"it cannot be read ({error})")
        return Kept()
    if kept.version != VERSION:
        set_aside(path, "other-version", f"it has version {kept.version}")
        return Kept()
    chats = tuple(
        replace(chat, exchanges=tuple(exchange.failed(INTERRUPTED) for exchange in chat.exchanges))
        for chat in kept.chats
    )
    return msgspec.structs.replace(kept, chats=chats)


def save(folder: Path, kept: Kept) -> None:
    """Remember. Raises :class:`OSError`."""
    private_folder(folder)
    with locked(folder):
        write_private(folder / FILE_NAME, msgspec.json.encode(kept))
