"""The window's own SVG icons, tinted when they are loaded."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from gui.theme import ASSETS

_INK = "#000000"
"""What the files are drawn in; replaced by the wanted colour."""


def pixmap(name: str, color: QColor, size: int, ratio: float = 2.0) -> QPixmap:
    """``assets/icons/<name>.svg`` in ``color``, ``size`` logical pixels square, at ``ratio`` device pixels each."""
    return _pixmap(name, color.name(), size, ratio)


@lru_cache(maxsize=256)
def _pixmap(name: str, color: str, size: int, ratio: float) -> QPixmap:
    source = (ASSETS / "icons" / f"{name}.svg").read_text(encoding="utf-8").replace(_INK, color)
    result = QPixmap(round(size * ratio), round(size * ratio))
    result.setDevicePixelRatio(ratio)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return result


def icon(name: str, color: QColor, disabled: QColor | None = None, size: int = 16) -> QIcon:
    """A button's icon, sharp at 1x and 2x, with its own colour while the button is disabled."""
    result = QIcon()
    for ratio in (1.0, 2.0):
        result.addPixmap(pixmap(name, color, size, ratio), QIcon.Mode.Normal)
        result.addPixmap(pixmap(name, disabled or color, size, ratio), QIcon.Mode.Disabled)
    return result
