"""A process that announces a node and tells what it sees itself, as JSON lines with the machine's monotonic time.

``python -m tests.netlab.announcer NODE_ID NAME PORT`` ends with a goodbye when its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from discovery.beacon import Beacon
from discovery.browser import Browser
from discovery.interfaces import lan_interfaces
from runtime import owner


def say(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, "seconds": time.monotonic(), **facts}), flush=True)


async def main(node_id: str, name: str, port: str) -> None:
    browser = Browser(
        lambda change, sighting: say(
            change,
            node_id=sighting.node_id,
            name=sighting.name,
            boot_id=sighting.boot_id,
            addresses=sighting.addresses,
            port=sighting.port,
        ),
        lan_interfaces,
    )
    beacon = Beacon(node_id, name, int(port), lan_interfaces)
    await browser.start()
    await beacon.start()
    say("announced")
    try:
        await owner.gone()
    finally:
        await beacon.close()
        await browser.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main(*sys.argv[1:]))
