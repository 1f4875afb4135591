"""``pomona serve``: a model for other programs, without a window, until someone ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.cli.demo import run_until_over
from runtime.cli.place import note, placed
from runtime.cli.progress import Progress
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Failed, Ready, Recovering

if TYPE_CHECKING:
    from runtime.cli.place import Place, PlaceOptions
    from runtime.engine.orders import HopKind
    from runtime.server.options import ApiOptions

EXIT_FAILED = 1


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What to serve and how, as asked for on the command line."""

    place: PlaceOptions
    api: ApiOptions
    hops: HopKind = "tls"


def run_serve(options: ServeOptions) -> int:
    """Serve until a signal or a failure; returns the exit status. Raises :class:`PomonaError`."""
    return run_until_over(_run(options))


async def _run(options: ServeOptions) -> int:
    this_task = asyncio.current_task()
    assert this_task is not None  # a coroutine runs in a task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this_task.cancel)
    async with placed(options.place) as place:
        return await _serve(place, options)


async def _serve(place: Place, options: ServeOptions) -> int:
    client = await SessionClient.start(
        place.plan(),
        place.folder,
        place.nodes,
        place.home,
        hops=options.hops,
        folder_on=place.folder_on,
        api=options.api,
    )
    progress = Progress()
    try:
        async for event in client.events():
            progress.tell(event)
            match event:
                case Ready():
                    _tell_ready(event, progress)
                case Recovering(reason):
                    note(f"{reason} The model is loaded again without it; requests wait.")
                case Failed(reason):
                    note(f"pomona: {reason}")
                    return EXIT_FAILED
                case _:
                    pass
    finally:
        await client.close()
    return 0


def _tell_ready(ready: Ready, progress: Progress) -> None:
    for rank in ready.ranks:
        note(f"{rank.node_name}: layers {rank.first_layer} to {rank.last_layer}, {rank.held_bytes / (1 << 20):.0f} MB")
    if (serving := progress.serving) is None:
        return
    key = f" (API key {serving.api_key})" if serving.api_key else ""
    sys.stdout.write(f"{serving.model} is ready at {serving.address}{key}\n")
    sys.stdout.flush()
