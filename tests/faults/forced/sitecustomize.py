"""Makes a Pomona process go wrong from outside: Python imports this first, where its folder is on ``PYTHONPATH``.

Files in the folder that ``POMONA_FAULTS`` names say what is to happen; the product knows nothing of it:

- ``rank-N``, for the worker of rank N: ``load``, ``prefill`` or ``decode`` raises there, ``hang`` stays in
  decoding, ``hang in load`` in loading, ``hang at start`` before anything else;
- ``clock``, for every process: seconds by which its wall clock is off;
- ``version``, for an agent: ``ours`` has it misunderstand its controller, ``theirs`` the reverse;
- ``recoveries``, for a controller: how often a session may be mended.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER = Path(os.environ.get("POMONA_FAULTS", "/nonexistent"))


def wish(name: str) -> str:
    try:
        return (FOLDER / name).read_text()
    except OSError:
        return ""


class ForcedError(Exception):
    """What is raised."""


def own_rank() -> str:
    """The name of this worker's wish; empty for other processes."""
    return f"rank-{sys.orig_argv[sys.orig_argv.index('--rank') + 1]}" if "--rank" in sys.orig_argv else ""


def in_stage(module: Any) -> None:
    name = own_rank()
    if not name:
        return
    finish, load = module.Stage._finish, module.Stage.load

    def forced_finish(self: Any, step: Any, *rest: Any) -> Any:
        if wish(name) == ("decode" if step.sample else "prefill"):
            raise ForcedError(f"forced in {wish(name)}")
        while step.sample and wish(name) == "hang":
            time.sleep(0.1)
        return finish(self, step, *rest)

    def forced_load(self: Any) -> Any:
        if wish(name) == "load":
            raise ForcedError("forced in load")
        for place, read in enumerate(load(self)):
            while place == 3 and wish(name) == "hang in load":
                time.sleep(0.1)
            yield read

    module.Stage._finish, module.Stage.load = forced_finish, forced_load


def in_messages(module: Any) -> None:
    version, encode = wish("version"), module.encode
    if version == "ours":

        def misunderstood(text: str) -> Any:
            return module._agent_decoder.decode(text)

        module.decode_from_controller = misunderstood
    elif version == "theirs":
        module.encode = lambda message: encode(message).replace('"type":"', '"type":"new_')


def in_recovery(module: Any) -> None:
    if limit := wish("recoveries"):
        module.RECOVERIES = int(limit)


CHANGES: dict[str, Callable[[Any], None]] = {
    "runtime.engine.stage": in_stage,
    "runtime.agent.messages": in_messages,
    "runtime.cluster.recovery": in_recovery,
}


class _Changing(Loader):
    def __init__(self, own: Loader, change: Callable[[Any], None]) -> None:
        self._own = own
        self._change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        self._change(module)


class _Finder(MetaPathFinder):
    def __init__(self) -> None:
        self._looking = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname not in CHANGES or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, CHANGES[fullname])
        return spec


if "POMONA_FAULTS" in os.environ:
    _true_time = time.time
    time.time = lambda: _true_time() + float(wish("clock") or 0)
    sys.meta_path.insert(0, _Finder())
    if (_name := own_rank()) and wish(_name) == "hang at start":
        time.sleep(300)  # nothing is read meanwhile
