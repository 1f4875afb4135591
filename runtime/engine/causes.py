"""What broke a rank, in words for a person: MLX's and the system's errors translated to what is at fault. Pure."""

from __future__ import annotations

import errno

from runtime.engine.hop import HopError
from runtime.errors import PomonaError

_PEER_LOST = "connection to a peer was lost"
_DAMAGED = ("[read]", "invalid data offsets", "exceeding the size of the file", "[load_safetensors]")
_NO_MEMORY = ("[malloc", "[metal::malloc]", "Attempting to allocate", "Insufficient Memory", "bad_alloc")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FILE_WORDS = "a file of the model is cut short or damaged; fetch the model again"
_MEMORY_WORDS = "the memory ran out; give this node fewer layers, or close other programs on it"


def lost_peer(error: Exception) -> bool:
    """Whether a rank only saw another rank of its tensor group go."""
    return isinstance(error, RuntimeError) and _PEER_LOST in str(error)


def cause(error: Exception) -> str:
    """One sentence without the node's name, which whoever tells it puts in front."""
    words = text = str(error)
    match error:
        case PomonaError() | HopError():
            pass
        case MemoryError():
            words = _MEMORY_WORDS
        case RuntimeError():
            words = _of_mlx(text)
        case OSError() if error.errno in _FULL:
            words = "its disk is full; make room there"
        case OSError():
            words = f"the system reports: {error.strerror or text}"
        case _:
            words = f"the worker failed: {type(error).__name__}: {text}"
    return words


def _of_mlx(text: str) -> str:
    if _PEER_LOST in text:
        return "another rank of its tensor group is gone"
    if any(words in text for words in _NO_MEMORY):
        return _MEMORY_WORDS
    if any(words in text for words in _DAMAGED):
        return f"{_FILE_WORDS} (MLX reports: {text})"
    return f"MLX reports: {text}"
