"""The controller's hops to the driver: requests go out on one, tokens come back on the other.

Blocking sockets in threads, bridged to the controller's asyncio loop.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from runtime.engine import hop
from runtime.engine.hop import EVENTS_ROLE, REQUESTS_ROLE, Credentials, HopError, Receiver, Sender, role_in

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from runtime.engine.frames import AnyFrame
    from runtime.engine.hop import Address

_DIAL_SECONDS = 20.0


class DriverLink:
    """An open link. ``on_frame`` and ``on_lost`` are called on the loop that opened it."""

    def __init__(
        self, requests: Sender, events: Receiver, on_frame: Callable[[AnyFrame], None], on_lost: Callable[[str], None]
    ) -> None:
        self._requests = requests
        self._events = events
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self._writer = ThreadPoolExecutor(1, "requests")
        self._reader = threading.Thread(target=self._read, name="events", daemon=True)
        self._reader.start()

    @classmethod
    async def open(
        cls,
        address: Address,
        key: bytes,
        ours: Credentials,
        epoch: int,
        on_frame: Callable[[AnyFrame], None],
        on_lost: Callable[[str], None],
    ) -> Self:
        """Dial the driver of this epoch. Raises :class:`HopError` if it does not answer or is somebody else."""

        def dial(role: str) -> ssl.SSLSocket:
            return hop.dial(address, key, role_in(epoch, role), ours, within_seconds=_DIAL_SECONDS)

        events = await asyncio.to_thread(dial, EVENTS_ROLE)
        requests = await asyncio.to_thread(dial, REQUESTS_ROLE)
        return cls(Sender(requests), Receiver(events, payload_limit_bytes=0), on_frame, on_lost)

    async def send(self, frame: AnyFrame) -> None:
        """Send a request; raises :class:`HopError` if the driver is gone."""
        await self._loop.run_in_executor(self._writer, self._requests.send, frame)

    def post(self, frame: AnyFrame) -> None:
        """Send, after what was sent before, without waiting for it.

        If the driver is gone, ``on_lost`` tells, and whoever asked goes to the next driver.
        """
        self._writer.submit(self._requests.send, frame)

    async def close(self) -> None:
        """Close both hops and wait for the threads."""
        self._closing = True
        self._requests.hang_up()
        self._events.hang_up()
        await asyncio.to_thread(self._reader.join)
        await asyncio.to_thread(self._writer.shutdown)
        self._requests.close()
        self._events.close()

    def _read(self) -> None:
        while True:
            try:
                frame, _payload = self._events.receive()
            except HopError as error:
                if not self._closing:
                    self._loop.call_soon_threadsafe(self._on_lost, str(error))
                return
            self._loop.call_soon_threadsafe(self._on_frame, frame)
