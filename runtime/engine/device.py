"""What the device is told before a model is loaded."""

from __future__ import annotations

import mlx.core as mx


def has_gpu() -> bool:
    """Whether the model computes on one, where its work takes no processor time."""
    return bool(mx.default_device() == mx.gpu)


def keep_wired() -> None:
    """On Metal, keep as much memory resident as the system recommends, as mlx-lm does while it generates.

    Without it macOS may page weights out between two requests. The limit ends with this process.
    """
    if mx.metal.is_available():
        mx.set_wired_limit(int(mx.device_info()["max_recommended_working_set_size"]))
