"""The agent process: one node, advertised, serving until it is told to stop."""

from __future__ import annotations

import asyncio
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

from discovery.beacon import Beacon, NodeIdTaken
from discovery.identity import load_identity
from resources.monitor import Monitor
from resources.probe import probe_machine, snapshot
from runtime import owner
from runtime.agent.key import data_folder, load_key
from runtime.agent.messages import AgentStarted
from runtime.agent.server import AgentServer
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from resources.node import NodeResources

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
"""Agents listen here alone until pairing exists."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent runs. A virtual node has a name, a budget, and a data folder that goes with it."""

    port: int = 0
    name: str | None = None
    virtual_memory_bytes: int | None = None
    owned: bool = False
    """Ends when its standard input ends, that is, when whoever started it is gone."""


def run_agent(options: AgentOptions) -> int:
    """Serve until a signal, or the end of standard input for an owned agent. Raises :class:`PomonaError`."""
    if options.virtual_memory_bytes is None:
        asyncio.run(_serve(options, data_folder()))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="pomona-node-"))
    try:
        asyncio.run(_serve(options, folder))
    finally:
        shutil.rmtree(folder)
    return 0


async def _serve(options: AgentOptions, folder: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    try:
        identity = load_identity(folder)
    except OSError as error:
        raise PomonaError(
            f"The folder {folder} cannot be used ({error.strerror}); make it yours and try again."
        ) from error
    name = options.name or identity.name
    machine = await asyncio.to_thread(probe_machine)

    monitor = Monitor()

    def resources() -> NodeResources:
        return snapshot(machine, identity.node_id, name, options.virtual_memory_bytes, monitor.latest())

    async with AsyncExitStack() as stack:
        if sys.platform == "darwin":  # elsewhere the kernel's own files tell all that is asked
            monitor.start()
            stack.push_async_callback(monitor.close)
        server = AgentServer(LOOPBACK, options.port, load_key(folder), identity, resources, folder / "logs")
        try:
            port = await server.start()
        except OSError as error:
            raise PomonaError(f"Port {options.port} is taken; give another with --port.") from error
        stack.push_async_callback(server.close)
        beacon = Beacon(identity.node_id, name, port)
        try:
            await beacon.start()
        except NodeIdTaken as error:
            raise PomonaError("An agent of this node runs already on this machine.") from error
        except OSError as error:
            raise PomonaError(f"This node cannot be announced on the network ({error.strerror}).") from error
        stack.push_async_callback(beacon.close)
        sys.stdout.write(msgspec.json.encode(AgentStarted(port, identity.node_id, os.getpid())).decode() + "\n")
        sys.stdout.flush()
        if options.owned:
            owned = asyncio.create_task(owner.gone(), name="owner")
            owned.add_done_callback(lambda _: stop.set())
            stack.callback(owned.cancel)
        await stop.wait()
        log.info("stopping")
