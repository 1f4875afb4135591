"""Draws the app's SVG at every size that a Mac wants and packs them into an .icns.

python packaging/bundle_icon.py OUT.icns
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from icnsutil import IcnsFile
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SOURCE = Path(__file__).parents[1] / "gui" / "assets" / "pomona.svg"
SIZES = {
    "icp4": 16, "ic11": 32, "icp5": 32, "ic12": 64, "ic07": 128, "ic13": 256, "ic08": 256, "ic14": 512, "ic09": 512,
    "ic10": 1024,
}  # fmt: skip
"""Pixels of each entry; ic11 to ic14 and ic10 are for screens of twice the density."""


def draw(pixels: int) -> QImage:
    """The icon as a square picture with transparent corners."""
    renderer = QSvgRenderer(str(SOURCE))
    if not renderer.isValid():
        raise SystemExit(f"{SOURCE} is no SVG that Qt can read.")
    image = QImage(pixels, pixels, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    return image


def png(image: QImage) -> bytes:
    """The picture as a PNG file."""
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # its stubs want bytes
    return bytes(content.data())


def write_icns(path: Path) -> None:
    """All sizes in one file."""
    application = QGuiApplication.instance() or QGuiApplication([])
    icon = IcnsFile()
    for kind, pixels in SIZES.items():
        icon.add_media(kind, data=png(draw(pixels)))
    icon.write(str(path), toc=False)
    del application  # Qt draws as long as there is one


if __name__ == "__main__":
    write_icns(Path(sys.argv[1]))
