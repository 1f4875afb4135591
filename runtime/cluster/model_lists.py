"""What the nodes in reach have: asked of each, and deleted there when a person wants it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.models.messages import (
    HELD_PATH,
    MODELS_PATH,
    UNFINISHED_PATH,
    Held,
    HeldModel,
    ModelOrder,
    Removed,
)
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

T = TypeVar("T")

_ASK_SECONDS = 30.0
_MAX_LIST_BYTES = 8 << 20


class NodeModels(NamedTuple):
    """The models on one node."""

    node: KnownNode
    models: tuple[HeldModel, ...]
    trouble: str = ""
    """Why they are not known, for a person."""


async def models_on(home: Home, nodes: Sequence[KnownNode]) -> list[NodeModels]:
    """What each of ``nodes`` has. One that does not say is named in ``trouble``."""

    async def ask(node: KnownNode) -> NodeModels:
        try:
            return NodeModels(node, await _asked(home, node, "GET", MODELS_PATH, tuple[HeldModel, ...]))
        except PomonaError as error:
            return NodeModels(node, (), str(error))

    return list(await asyncio.gather(*map(ask, nodes)))


async def ask_held(home: Home, node: KnownNode, order: ModelOrder) -> Held:
    """What a node has of one model, and where it serves the bytes. Raises :class:`PomonaError`."""
    return await _asked(home, node, "POST", HELD_PATH, Held, order)


async def remove_on(home: Home, node: KnownNode, order: ModelOrder) -> int:
    """Delete a model from a node's store; returns the bytes that this frees. Raises :class:`PomonaError`."""
    return (await _asked(home, node, "DELETE", MODELS_PATH, Removed, order)).freed_bytes


async def forget_unfinished_on(home: Home, node: KnownNode, order: ModelOrder) -> None:
    """Have a node give up what it has begun to fetch of a model. Raises :class:`PomonaError` while it still fetches."""
    await _answer(home, node, "DELETE", UNFINISHED_PATH, order)


async def _asked(
    home: Home, node: KnownNode, method: str, path: str, kind: type[T], order: ModelOrder | None = None
) -> T:
    answer = await _answer(home, node, method, path, order)
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise _silent(node, error) from error


async def _answer(home: Home, node: KnownNode, method: str, path: str, order: ModelOrder | None) -> bytes:
    body = msgspec.json.encode(order) if order is not None else None
    place = HostPort(node.host, node.port)
    try:
        async with new_session(_ASK_SECONDS) as session:
            return await call(
                session, method, place, path, home.context_for(node.certificate), body, limit_bytes=_MAX_LIST_BYTES
            )
    except Refused as error:
        raise PomonaError(
            f"{node.resources.name}: {error.reason or 'it does not trust this machine any more; pair with it again.'}"
        ) from error
    except NoAnswer as error:
        raise _silent(node, error) from error


def _silent(node: KnownNode, error: Exception) -> PomonaError:
    return PomonaError(f"{node.resources.name} does not say what models it has ({error}).")
