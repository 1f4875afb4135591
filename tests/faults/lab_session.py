"""A session over the nodes of a lab that tells in JSON lines what its front end sees.

``python -m tests.faults.lab_session FOLDER SPLIT KEEP ID...``, where KEEP is ``keep`` or ``end``. It asks the same
twice and ends when the second answer is over and the pipeline is whole again, or when the session has failed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agent.folder import data_folder, open_home
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Chat, ChatMessage, Ending, Failed, Finished, LoadProgress, Ready, Recovering, Text
from runtime.cluster.node_watcher import NodeWatcher
from tests.faults.seen import QUESTION
from tests.running import plan_for

if TYPE_CHECKING:
    from runtime.cluster.nodes import KnownNode

TOKENS = 60
"""The cable is pulled somewhere in it."""


def say(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, "seconds": time.monotonic(), **facts}), flush=True)


async def nodes_of(ids: list[str]) -> list[KnownNode]:
    home = open_home(data_folder())
    found: asyncio.Queue[tuple[KnownNode, ...]] = asyncio.Queue()
    watcher = NodeWatcher(home, found.put_nowait)
    await watcher.start()
    try:
        while True:
            nodes = {node.resources.node_id: node for node in await found.get()}
            if nodes.keys() >= set(ids):
                return [nodes[node_id] for node_id in ids]
    finally:
        await watcher.close()


async def main(folder: Path, split: list[int], ids: list[str], *, keep_running: bool) -> None:
    nodes = await nodes_of(ids)
    plan = plan_for(folder, nodes, split)
    client = await SessionClient.start(plan, folder, nodes, data_folder(), keep_running=keep_running)
    answers = 0
    rebuilding = False
    async for event in client.events():
        match event:
            case Ready():
                rebuilding = False
                say("ready", nodes=[rank.node_name for rank in event.ranks])
                if not answers:
                    await client.send(Chat("first", (ChatMessage("user", QUESTION),), TOKENS))
            case LoadProgress():
                say("progress", phase=event.phase)
            case Text():
                say("text", request=event.request_id, tokens=event.token_ids)
            case Finished():
                answers += 1
                say("finished", request=event.request_id)
                if answers == 1:
                    await client.send(Chat("second", (ChatMessage("user", QUESTION),), TOKENS))
            case Recovering(reason) | Ending(reason):
                rebuilding = isinstance(event, Recovering)
                say("trouble", reason=reason)
            case Failed(reason):
                say("failed", reason=reason)
            case _:
                pass
        if answers == 2 and not rebuilding:
            break
    await client.close()
    say("closed")


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]),
            [int(part) for part in sys.argv[2].split(",")],
            sys.argv[4:],
            keep_running=sys.argv[3] == "keep",
        )
    )
