"""Announces one agent over mDNS, from its start until it is closed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from zeroconf import DNSQuestionType
from zeroconf.asyncio import AsyncServiceInfo

from discovery.announcement import SERVICE_TYPE, encode_txt, host_name, instance_name
from discovery.interfaces import loopback_interfaces
from discovery.multicast import Multicast, addresses_of

if TYPE_CHECKING:
    from zeroconf.asyncio import AsyncZeroconf

    from discovery.interfaces import LanInterface
    from discovery.multicast import Look


_PROBE_MILLISECONDS = 1500  # room for two questions: a responder answers by multicast once a second at most


class NodeIdTaken(Exception):
    """Another agent on the network announces the same node id: a twin made by copying a data folder."""


class Beacon:
    """Makes one agent visible to browsers on the interfaces that ``look`` lists, also when they change.

    Whoever asks hears their addresses and ``port``, and a boot id that is new for each beacon: a restarted agent
    would otherwise look unchanged. mDNS tells who may be there and no more: after a crash the announcement
    stays in caches for up to 19 minutes.
    """

    def __init__(self, node_id: str, name: str, port: int, look: Look = loopback_interfaces) -> None:
        self.boot_id = secrets.token_hex(8)
        self._node_id = node_id
        self._name = name
        self._port = port
        self._multicast = Multicast(look, self._on_network)
        self._zeroconf: AsyncZeroconf | None = None

    async def start(self) -> None:
        """Announce; takes about two seconds, others know after one and a half. No network at all is no error.

        Raises :class:`NodeIdTaken`, or :class:`OSError` if an interface cannot be used.
        """
        self._zeroconf = await self._multicast.open()
        try:
            await self._refuse_twin(self._zeroconf)
            info = self._info(self._multicast.interfaces)
            announced = await self._zeroconf.async_register_service(info, cooperating_responders=True)
            self._multicast.follow()
            await announced
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Say goodbye, so that others forget this agent at once. Does nothing if it is not announced."""
        self._zeroconf = None
        await self._multicast.close()

    async def _on_network(self, interfaces: tuple[LanInterface, ...]) -> None:
        """New records first: new sockets announce at once what they find, and old addresses would stay in caches."""
        assert self._zeroconf is not None, "the network is followed while the beacon is open"
        info = self._info(interfaces)
        self._zeroconf.zeroconf.registry.async_update(info)
        await self._multicast.use(interfaces)
        announced = await self._zeroconf.async_update_service(info)
        await announced

    def _info(self, interfaces: tuple[LanInterface, ...]) -> AsyncServiceInfo:
        return AsyncServiceInfo(
            SERVICE_TYPE,
            instance_name(self._node_id),
            port=self._port,
            properties=encode_txt(self._node_id, self._name, self.boot_id, self._port),
            server=host_name(self._node_id),
            parsed_addresses=addresses_of(interfaces),
        )

    async def _refuse_twin(self, zeroconf: AsyncZeroconf) -> None:
        """Ask for our own name first.

        zeroconf would do so itself, but by questions whose answers go to one socket of all that share the port: to the
        system's own responder, or to another agent on this machine.
        """
        twin = AsyncServiceInfo(SERVICE_TYPE, instance_name(self._node_id))
        if await twin.async_request(zeroconf.zeroconf, _PROBE_MILLISECONDS, DNSQuestionType.QM):
            raise NodeIdTaken(f"another agent already announces itself as {twin.name}")
