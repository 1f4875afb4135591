"""Renders the window in its main states: ``python -m gui.screens FOLDER``. For looking at, and for the README."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gui.scenes import SCENES
from gui.session_scenes import settle

if TYPE_CHECKING:
    from PySide6.QtGui import QPixmap

    from gui.window import Window


def _picture(window: Window) -> QPixmap:
    """The window with its open dialog in the middle: each is a window of its own, which a grab leaves out."""
    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QDialog

    picture = window.grab()
    for dialog in window.findChildren(QDialog):
        if dialog.isVisible():
            shot = dialog.grab()
            middle = window.rect().center() - dialog.rect().center()
            painter = QPainter(picture)
            painter.drawPixmap(QPoint(middle.x(), middle.y()), shot)
            painter.end()
            dialog.close()
    return picture


def render(folder: Path, theme: str, names: list[str]) -> None:
    """Write one picture per state, in one appearance, at the scale of this process."""
    from gui.app import make_application
    from gui.appearance import Appearance, Choice
    from gui.window import Window

    app = make_application(["pomona"])
    appearance = Appearance(Choice[theme.upper()])
    for scene in SCENES:
        if names and scene.__name__ not in names:
            continue
        window = Window(appearance, ask_before_close=False)
        window.live.load_chart()
        scene(window)
        settle(window)
        scale = f"{window.devicePixelRatioF():g}x"
        path = folder / f"{scene.__name__}_{theme}_{scale}.png"
        _picture(window).save(str(path))
        window.close()
        window.deleteLater()
        app.processEvents()


def main(arguments: list[str]) -> int:
    """Render everything, light and dark, at 1x and 2x. Qt reads the scale when it starts, so each is a process."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m gui.screens FOLDER [STATE…]\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    theme = os.environ.get("POMONA_SCREENS_THEME")
    if theme is not None:
        render(folder, theme, arguments[1:])
        return 0
    for theme in ("light", "dark"):
        for scale in ("1", "2"):
            settings = {"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale, "POMONA_SCREENS_THEME": theme}
            subprocess.run(
                [sys.executable, "-m", "gui.screens", *arguments], env={**os.environ, **settings}, check=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
