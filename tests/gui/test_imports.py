"""What the window's process loads, and what it must not."""

import subprocess
import sys

CODE = """
import sys
import gui.app, gui.screens
import {extra}
heavy = [name for name in sys.modules if name.split(".")[0] in {names!r}]
print(sorted(heavy))
"""


def loaded(names, extra="gui.window"):
    result = subprocess.run(
        [sys.executable, "-c", CODE.format(names=names, extra=extra)], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_the_window_imports_no_mlx_and_no_transformers():
    assert loaded({"mlx", "mlx_lm", "transformers", "torch"}) == "[]"


def test_nor_do_the_parts_of_runtime_that_it_drives():
    extra = "runtime.cluster.client, runtime.cluster.nodes, runtime.models.layout"
    assert loaded({"mlx", "mlx_lm", "transformers", "torch"}, extra) == "[]"


def test_the_plots_library_waits_until_the_window_is_up():
    assert loaded({"pyqtgraph"}) == "[]"


def test_the_parts_below_know_nothing_of_qt():
    parts = "runtime.planning.plan, runtime.cluster.client, runtime.cluster.nodes"
    code = f"import sys, {parts}; print('PySide6' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
