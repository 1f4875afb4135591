"""A process that watches for nodes as a window does, and tells every change of its lists as a JSON line.

``python -m tests.netlab.onlooker`` uses the data folder of its host, and ends when its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from discovery.browser import Browser
from discovery.interfaces import all_interfaces
from runtime import owner
from runtime.agent.folder import data_folder, open_home
from runtime.cluster.node_watcher import NodeWatcher

if TYPE_CHECKING:
    from runtime.cluster.nodes import KnownNode, UnpairedNode


class Lists:
    """Both lists by node id, with names and hosts."""

    def __init__(self) -> None:
        self.usable: dict[str, tuple[str, str]] = {}
        self.unpaired: dict[str, tuple[str, str]] = {}
        self._said: object = None

    def take_usable(self, nodes: tuple[KnownNode, ...]) -> None:
        self.usable = {node.resources.node_id: (node.resources.name, node.host) for node in nodes}
        self.say()

    def take_unpaired(self, nodes: tuple[UnpairedNode, ...]) -> None:
        self.unpaired = {node.node_id: (node.name, node.host) for node in nodes}
        self.say()

    def say(self) -> None:
        """Memory and load change all the time, and are not what is waited for."""
        if self._said == (self.usable, self.unpaired):
            return
        self._said = (self.usable, self.unpaired)
        event = {"event": "nodes", "seconds": time.monotonic(), "usable": self.usable, "unpaired": self.unpaired}
        print(json.dumps(event), flush=True)


async def main() -> None:
    lists = Lists()
    watcher = NodeWatcher(
        open_home(data_folder()),
        lists.take_usable,
        lists.take_unpaired,
        browser=partial(Browser, look=all_interfaces),
    )
    await watcher.start()
    lists.say()
    try:
        await owner.gone()
    finally:
        await watcher.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main())
