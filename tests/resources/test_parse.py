"""Parsers of probe outputs, on outputs of real machines and on nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.parse import MAX_NAME_CHARACTERS, chip_from_cpuinfo, tidy


def cpuinfo(line: str) -> str:
    """A ``/proc/cpuinfo`` of two processors around one line."""
    block = f"processor\t: 0\nvendor_id\t: Someone\n{line}\nstepping\t: 1\nflags\t\t: fpu model name : vme\n\n"
    return block * 2


@pytest.mark.parametrize(
    ("line", "chip"),
    [
        ("model name\t: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", "Intel Core i7-9750H"),
        ("model name\t: 12th Gen Intel(R) Core(TM) i7-12700K", "12th Gen Intel Core i7-12700K"),
        ("model name\t: Intel(R) Xeon(R) Processor @ 2.10GHz", "Intel Xeon"),
        ("model name\t: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", "Intel Xeon Platinum 8259CL"),
        ("model name\t: AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("model name\t: AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9 7950X"),
        ("model name\t: AMD Ryzen Threadripper 3970X 32-Core Processor", "AMD Ryzen Threadripper 3970X"),
        ("model name\t: ARMv7 Processor rev 4 (v7l)", "ARMv7 rev 4 (v7l)"),
        ("Model\t\t: Raspberry Pi 5 Model B Rev 1.0", "Raspberry Pi 5 Model B Rev 1.0"),
        ("cpu model\t\t: MIPS 74Kc V5.0", "MIPS 74Kc V5.0"),
        ("CPU implementer\t: 0x41", None),
        ("model\t\t: 113", None),
        ("model name\t:", None),
        ("model name\t: CPU @ 2.60GHz", None),
    ],
)
def test_cpuinfo_names_the_processor(line, chip):
    assert chip_from_cpuinfo(cpuinfo(line)) == chip


@given(st.text())
def test_any_text_gives_a_short_printable_name_or_none(text):
    for chip in (tidy(text), chip_from_cpuinfo(cpuinfo(f"model name\t: {text}"))):
        assert chip is None or (chip.isprintable() and 0 < len(chip) <= MAX_NAME_CHARACTERS)
