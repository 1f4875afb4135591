"""By which link model bytes go between two nodes: the one that a job takes, as both of them measured it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from runtime.cluster.link_survey import is_here, survey_links
from runtime.cluster.links import pair_ids
from runtime.cluster.model_shares import Way

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

log = logging.getLogger(__name__)


async def ways_between(
    home: Home, nodes: Sequence[KnownNode], pairs: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Way]:
    """For each of ``pairs`` (who reads, who gives, by their ids) how the first reaches the second.

    Links that are not known yet are measured, except between agents of one machine. One that cannot be measured now is
    gone by where this machine reaches the node, at an unknown speed. The nodes must know each other.
    """
    by_id = {node.resources.node_id: node for node in nodes}
    apart = {
        pair_ids(reader, giver) for reader, giver in pairs if not (is_here(by_id[reader]) and is_here(by_id[giver]))
    }
    chosen = {}
    if apart:
        ends = [node for node in nodes if any(node.resources.node_id in ids for ids in apart)]
        try:
            found = await survey_links(home, ends, only=apart)
        except OSError as error:
            log.warning("links are not known (%s): model bytes go where this machine reaches the nodes", error)
            found = ()
        chosen = {pair.node_ids: pair.chosen for pair in found}
    ways = {}
    for reader, giver in pairs:
        link = chosen.get(pair_ids(reader, giver))
        if link is None:
            ways[reader, giver] = Way(by_id[giver].host)
        else:
            ways[reader, giver] = Way(link.address_of(giver), link.name, link.bytes_per_second)
    return ways
