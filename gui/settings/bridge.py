"""The part of the bridge that concerns settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui.preferences import Preferences, api_options
from runtime.cluster.messages import Serve
from runtime.errors import PomonaError
from runtime.server.keys import own_api_key, renew_api_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from gui.services import Models
    from runtime.cluster.messages import ClientMessage


class SettingsBridge(QObject):
    """Methods of the upper block are called from the window's thread.

    Signals:
        keeping_told: ``(Keeping, trouble)``: how models are kept on this machine, and why it could not be changed.
        key_told: ``(key, trouble)``: this machine's API key, or why there is none.
    """

    keeping_told = Signal(object, str)
    key_told = Signal(str, str)

    def __init__(
        self,
        home: Path,
        submit: Callable[[Coroutine[object, object, None]], None],
        desk: Callable[[], Models],
        send: Callable[[ClientMessage], Awaitable[None]],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._home = home
        self._submit = submit
        self._desk = desk
        self._send = send
        self.preferences = Preferences()
        """Those that count for the next session; the loop's own once it runs."""

    def set_preferences(self, preferences: Preferences, running: bool) -> None:
        """They are others; ``running``: a session goes over to what concerns its API."""
        self._submit(self._set(preferences, running=running))

    def tell_keeping(self) -> None:
        """Look how models are kept; ``keeping_told`` follows."""
        self._submit(self._tell_keeping())

    def keep_token(self, token: str) -> None:
        """Keep the hub's token, or forget it if it is empty; ``keeping_told`` follows."""
        self._submit(self._tell_keeping(lambda desk: desk.keep_token(token)))

    def choose_folder(self, folder: Path | None) -> None:
        """Keep new models there, None for the usual place; ``keeping_told`` follows."""
        self._submit(self._tell_keeping(lambda desk: desk.choose_folder(folder)))

    def tell_key(self) -> None:
        """The API key, which is made if there is none; ``key_told`` follows."""
        self._submit(self._tell_key())

    def renew_key(self, running: bool) -> None:
        """Another API key; ``key_told`` follows."""
        self._submit(self._renew(running=running))

    # On the loop --------------------------------------------------------------------------------------------------

    async def _set(self, preferences: Preferences, *, running: bool) -> None:
        before, self.preferences = self.preferences, preferences
        if running and _api_of(before) != _api_of(preferences):
            await self._serve_again()

    async def _serve_again(self) -> None:
        options = await asyncio.to_thread(api_options, self.preferences, self._home)
        await self._send(Serve(options))

    async def _tell_keeping(self, change: Callable[[Models], None] | None = None) -> None:
        desk, trouble = self._desk(), ""
        try:
            if change is not None:
                await asyncio.to_thread(change, desk)
        except PomonaError as error:
            trouble = str(error)
        self.keeping_told.emit(await asyncio.to_thread(desk.keeping), trouble)

    async def _tell_key(self) -> None:
        await self._told_key(own_api_key)

    async def _told_key(self, ask: Callable[[Path], str]) -> bool:
        try:
            self.key_told.emit(await asyncio.to_thread(ask, self._home), "")
        except PomonaError as error:
            self.key_told.emit("", str(error))
            return False
        return True

    async def _renew(self, *, running: bool) -> None:
        if await self._told_key(renew_api_key) and running and self.preferences.needs_key:
            await self._serve_again()


def _api_of(preferences: Preferences) -> tuple[object, ...]:
    return preferences.reach, preferences.port, preferences.needs_key
