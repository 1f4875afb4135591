"""Errors of MLX and of the system become what a person can put right."""

from __future__ import annotations

import errno

import pytest

from runtime.engine.causes import cause, lost_peer
from runtime.errors import PomonaError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PomonaError("The model has no layer 31."), "The model has no layer 31."),
        (RuntimeError("[read] Unable to read from file."), "cut short or damaged"),
        (RuntimeError("[load_safetensors] Tensor 'a' invalid data offsets (0, 9)"), "cut short or damaged"),
        (RuntimeError("[metal::malloc] Unable to allocate 9 bytes."), "memory ran out"),
        (RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory"), "memory ran out"),
        (MemoryError(), "memory ran out"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied"),
        (RuntimeError("[reshape] Cannot infer the shape"), "MLX reports: [reshape]"),
        (KeyError("rope"), "KeyError: 'rope'"),
    ],
)
def test_what_is_at_fault_is_named(error, words):
    assert words in cause(error)
    assert not lost_peer(error)


def test_a_lost_peer_is_another_ones_fault():
    error = RuntimeError("[ring] connection to a peer was lost")
    assert lost_peer(error)
    assert "another rank" in cause(error)
