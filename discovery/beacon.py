"""Announces one agent over mDNS, from its start until it is closed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from zeroconf import DNSQuestionType
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from discovery.announcement import LOOPBACK, SERVICE_TYPE, encode_txt, host_name, instance_name

if TYPE_CHECKING:
    from collections.abc import Sequence


_PROBE_MILLISECONDS = 1500  # room for two questions: a responder answers by multicast once a second at most


class NodeIdTaken(Exception):
    """Another agent on the network announces the same node id: a twin made by copying a data folder."""


class Beacon:
    """Makes one agent visible to browsers on ``interfaces``, given by their addresses.

    Whoever asks hears those addresses and ``port``, and a boot id that is new for each beacon: a restarted agent
    would otherwise look unchanged. mDNS tells who may be there and no more: after a crash the announcement
    stays in caches for up to 19 minutes.
    """

    def __init__(self, node_id: str, name: str, port: int, interfaces: Sequence[str] = LOOPBACK) -> None:
        self.boot_id = secrets.token_hex(8)
        self._interfaces = list(interfaces)
        self._info = AsyncServiceInfo(
            SERVICE_TYPE,
            instance_name(node_id),
            port=port,
            properties=encode_txt(node_id, name, self.boot_id, port),
            server=host_name(node_id),
            parsed_addresses=self._interfaces,
        )
        self._zeroconf: AsyncZeroconf | None = None

    async def start(self) -> None:
        """Announce; takes about two seconds, others know after one and a half.

        Raises :class:`NodeIdTaken`, or :class:`OSError` if an interface cannot be used.
        """
        self._zeroconf = AsyncZeroconf(interfaces=self._interfaces)
        try:
            await self._refuse_twin(self._zeroconf)
            announced = await self._zeroconf.async_register_service(self._info, cooperating_responders=True)
            await announced
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Say goodbye, so that others forget this agent at once. Does nothing if it is not announced."""
        zeroconf, self._zeroconf = self._zeroconf, None
        if zeroconf is not None:
            await zeroconf.async_close()

    async def _refuse_twin(self, zeroconf: AsyncZeroconf) -> None:
        """Ask for our own name first.

        zeroconf would do so itself, but by questions whose answers go to one socket of all that share the port: to the
        system's own responder, or to another agent on this machine.
        """
        twin = AsyncServiceInfo(SERVICE_TYPE, self._info.name)
        if await twin.async_request(zeroconf.zeroconf, _PROBE_MILLISECONDS, DNSQuestionType.QM):
            raise NodeIdTaken(f"another agent already announces itself as {self._info.name}")
