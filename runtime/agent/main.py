"""The agent process: one node, advertised, serving until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from discovery.address import DEFAULT_PORT
from discovery.beacon import Beacon, NodeIdTaken
from discovery.interfaces import lan_interfaces, loopback_interfaces
from resources import starting
from resources.cpu_share import CpuShare
from resources.probe import probe_machine
from runtime import owner
from runtime.agent.folder import data_folder, open_home
from runtime.agent.job_logs import LogRoutes, drop_old_logs
from runtime.agent.local import noted
from runtime.agent.login_item import LoginItem, removed_with
from runtime.agent.messages import AgentStarted
from runtime.agent.models.service import ModelService
from runtime.agent.node import AgentNode
from runtime.agent.server import AgentServer, Reach, ServerOptions
from runtime.agent.window_lock import window_is_open
from runtime.app_nap import stay_responsive
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from discovery.home import Home
    from discovery.interfaces import LanInterface

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""Between two looks at whether a window is open."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent runs. A virtual node has a name, a budget, and a data folder that goes with it."""

    port: int | None = None
    """None takes the usual one, or any if that is not free."""
    name: str | None = None
    reach: Reach = "auto"
    virtual_memory_bytes: int | None = None
    virtual_cpu_share: float | None = None
    """Of one core, for all workers together."""
    virtual_bandwidth: int | None = None
    """Bytes per second of memory that plans count with."""
    trusted_certificate: Path | None = None
    """Of a controller that this node trusts from the start, as PEM."""
    owned: bool = False
    """Ends when its standard input ends, that is, when whoever started it is gone."""
    at_login: bool = False
    """Started by the login item: ends when the app was deleted, and takes the item along."""
    with_window: bool = False
    """Ends when no window is open on this machine and no job runs here."""


def run_agent(options: AgentOptions) -> int:
    """Serve until a signal, or the end of standard input for an owned agent. Raises :class:`PomonaError`."""
    stay_responsive()
    if options.virtual_memory_bytes is None:
        asyncio.run(_serve(options, data_folder()))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="pomona-node-"))
    try:
        with _cpu_share(options, folder.name):
            asyncio.run(_serve(options, folder))
    finally:
        shutil.rmtree(folder)
    return 0


@contextlib.contextmanager
def _cpu_share(options: AgentOptions, name: str) -> Iterator[None]:
    """Keep this process, and what it starts, to its share of the CPU."""
    if options.virtual_cpu_share is None:
        yield
        return
    try:
        share = CpuShare(name, options.virtual_cpu_share)
    except OSError as error:
        raise PomonaError(f"This virtual node cannot have a CPU share: {error}.") from error
    try:
        share.take(os.getpid())
        yield
    finally:
        share.close()


async def _serve(options: AgentOptions, folder: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    home = open_home(folder)
    if options.trusted_certificate is not None:
        _trust(home, options.trusted_certificate)
    identity = home.identity
    name = options.name or identity.name
    machine = await asyncio.to_thread(probe_machine)

    node = AgentNode(
        machine,
        identity.node_id,
        name,
        folder,
        data_folder(),  # of the machine, also for a virtual node
        budget_bytes=options.virtual_memory_bytes,
        cpu_share=options.virtual_cpu_share,
        bandwidth=options.virtual_bandwidth,
    )

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(node.watched())
        models = ModelService(home)
        stack.callback(models.close)
        where = ServerOptions(_ports(options), options.reach)
        logs = folder / "logs"
        drop_old_logs(logs)
        routes = (*node.routes, *models.routes, *LogRoutes(logs).routes)
        server = AgentServer(home, where, node.resources, logs, routes)
        try:
            port = await server.start()
        except OSError as error:
            raise PomonaError(f"Port {options.port} is taken; give another with --port.") from error
        stack.push_async_callback(server.close)
        stack.enter_context(noted(folder, port))
        started = AgentStarted(port, identity.node_id, os.getpid(), identity.certificate_pem)
        sys.stdout.write(msgspec.json.encode(started).decode() + "\n")
        sys.stdout.flush()

        def look() -> tuple[LanInterface, ...]:
            return (lan_interfaces() if server.on_network else ()) or loopback_interfaces()

        beacon = Beacon(identity.node_id, name, port, look)
        try:
            await beacon.start()
        except NodeIdTaken as error:
            raise PomonaError("An agent of this node runs already on this machine.") from error
        except OSError as error:
            raise PomonaError(f"This node cannot be announced on the network ({error.strerror}).") from error
        stack.push_async_callback(beacon.close)
        for reason in _reasons_to_end(options, folder, server):
            waiting = asyncio.create_task(reason)
            waiting.add_done_callback(lambda _: stop.set())
            stack.callback(waiting.cancel)
        await stop.wait()
        log.info("stopping")


def _reasons_to_end(options: AgentOptions, folder: Path, server: AgentServer) -> list[Coroutine[None, None, None]]:
    """What an agent waits for beside a signal; one is enough."""
    reasons = []
    if options.owned:
        reasons.append(owner.gone())
    if options.at_login:
        reasons.append(removed_with(Path(starting.launcher()[0]), LoginItem()))
    if options.with_window:
        reasons.append(_unneeded(folder, server))
    return reasons


async def _unneeded(folder: Path, server: AgentServer) -> None:
    """Return when nobody needs this agent any more."""
    while window_is_open(folder) or server.busy:  # noqa: ASYNC110  the kernel tells nobody when a lock is let go
        await asyncio.sleep(_LOOK_SECONDS)


def _ports(options: AgentOptions) -> tuple[int, ...]:
    if options.port is not None:
        return (options.port,)
    return (0,) if options.virtual_memory_bytes is not None else (DEFAULT_PORT, 0)


def _trust(home: Home, certificate: Path) -> None:
    try:
        home.trust.pair(certificate.read_text("ascii"), "the controller that started this node")
    except (OSError, ValueError) as error:
        raise PomonaError(f"The certificate {certificate} cannot be used ({error}).") from error
