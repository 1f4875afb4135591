"""``pomona demo``: virtual nodes on this machine and the demo model, in the window or in the console."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from discovery.home import temporary_home
from runtime.agent.calibration import measure_once
from runtime.agent.folder import data_folder
from runtime.cli.console import Question, run_console
from runtime.cli.display import has_display
from runtime.cli.place import PlaceOptions, note
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from runtime.cluster.model_names import DEMO
from runtime.models.cache_folder import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from runtime.engine.orders import HopKind
    from runtime.planning.values import Mode

EXIT_TERMINATED = 143
DEFAULT_PROMPT = "What is the capital of France?"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The demo as asked for on the command line."""

    headless: bool
    node_count: int
    split: tuple[int, ...] | None
    mode: Mode
    prompt: str | None
    max_tokens: int
    temperature: float
    seed: int | None
    hops: HopKind
    as_json: bool


def run_demo(options: DemoOptions, open_window: Callable[..., int]) -> int:
    """Run it to the end; everything that it started is gone when it returns. Raises :class:`PomonaError`."""
    has_split = options.split is not None or options.mode != "pipeline"  # a window has its own, to be dragged
    in_console = options.headless or options.as_json or options.prompt is not None or has_split
    if not in_console and not has_display():
        note("There is no display here, so the demo runs in this terminal.")
        in_console = True
    if not in_console:
        return _in_window(options, open_window)
    place = PlaceOptions(DEMO, virtual_nodes=options.node_count, split=options.split, mode=options.mode)
    question = Question(options.prompt or default_prompt(), options.max_tokens, options.temperature, options.seed)
    return run_until_over(run_console(place, question, hops=options.hops, as_json=options.as_json))


def run_until_over(session: Coroutine[Any, Any, int]) -> int:
    """Run a command's coroutine, which ends everything that it started when it is cancelled."""
    try:
        return asyncio.run(session)
    except asyncio.CancelledError:  # SIGTERM
        return EXIT_TERMINATED


def _in_window(options: DemoOptions, open_window: Callable[..., int]) -> int:
    nodes = virtual_nodes(options.node_count)
    with temporary_home() as home, ExitStack() as stack:

        def behind() -> None:
            agents = stack.enter_context(VirtualNodes(nodes, home, cache_folder() / "demo.log"))
            agents.started()
            threading.Thread(target=_calibrate, name="calibration", daemon=True).start()

        return open_window(home.folder, behind=behind, demo=True)


def _calibrate() -> None:
    asyncio.run(measure_once(data_folder(), version("mlx")))


def default_prompt() -> str | None:
    """None where someone sits at the terminal and can ask themselves."""
    return None if sys.stdin.isatty() else DEFAULT_PROMPT
