"""What a person sets for a node, from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.memory_messages import CAP_PATH, MemoryCapOrder
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

_CALL_SECONDS = 5.0


async def set_memory_cap(home: Home, node: KnownNode, cap_bytes: int | None) -> None:
    """Pomona may use at most so much of the memory of ``node``; None is the usual amount again. The node keeps it.

    What runs there goes on. Raises :class:`PomonaError` if the node does not take it.
    """
    name, context = node.resources.name, home.context_for(node.certificate)
    body = msgspec.json.encode(MemoryCapOrder(cap_bytes))
    async with new_session(_CALL_SECONDS) as session:
        try:
            await call(session, "PUT", HostPort(node.host, node.port), CAP_PATH, context, body)
        except Refused as error:
            raise PomonaError(error.reason or f"{name} does not take that; install the same Pomona on both.") from error
        except NoAnswer as error:
            raise PomonaError(f"{name} does not answer; check that Pomona runs there.") from error
