"""What a worker counts while it runs, over all its epochs. Each field is written by one thread alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Since the worker started. A step counter that stands still while work waits means a stall."""

    steps: int = 0
    tokens: int = 0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    """Compute had nothing to do."""
    send_seconds: float = 0.0
    """Spent writing to the next stage, beside compute."""
    sent_bytes: int = 0
    """Hidden states handed to the next stage."""
    in_flight: int = 0
    """On the driver: steps that have not come back."""
