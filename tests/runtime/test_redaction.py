"""A report shows what happened, and not to whom."""

from __future__ import annotations

import pytest

from runtime.redaction import Redaction


def test_names_and_addresses_are_replaced_alike_wherever_they_stand():
    text = (
        "Anna's Studio at 192.168.1.20:47665 dialled fe80::1c2d%en0, then 192.168.1.21.\n"
        "192.168.1.20 is Anna's Studio, 3c:22:fb:01:02:03, annas-studio.local.\n"
        f"id {'ab' * 32} in /Users/anna/Library and /home/anna/x"
    )
    shown = Redaction(["Studio", "Anna's Studio"])(text)
    for word in ("Anna", "anna", "192.168", "fe80", "3c:22", "abab"):
        assert word not in shown
    assert shown.count("node 1") == 2
    assert shown.count("<address 1>") == 2
    assert "<address 1>:47665" in shown
    assert "<address 2>" in shown
    assert "<address 3>" in shown
    assert "/Users/person/Library" in shown


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 20:59:11,123 runtime.engine.worker epoch 2 was given up",
        "mlx 0.32.4, mlx-lm 0.32.2, macOS 14.6.1",
        "refused ('127.0.0.1', 5): a stranger called; [::1]:47665",
        'File "worker.py", line 12, in run: x::y',
    ],
)
def test_what_names_nobody_stays(text):
    assert Redaction([])(text) == text
