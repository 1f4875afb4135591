"""What every test shares: no display is needed, and the demo model is made once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from runtime.models.demo import demo_model_folder

# A slow machine is no failure: time is the benchmarks' subject.
settings.register_profile("pomona", deadline=None)
settings.load_profile("pomona")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The demo model's folder: real weights."""
    return demo_model_folder()
