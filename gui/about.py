"""About Pomona: what it is, which version, and whose work it stands on."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from gui.theme import ASSETS, mono_font
from gui.widgets.labels import label, set_ink
from runtime.licences.components import as_text, components

if TYPE_CHECKING:
    from gui.theme import Theme

_WORDS = (
    "Runs one large language model over several Macs. Apache License 2.0.\n\n"
    "It uses Qt through PySide6 under the LGPL 3, whose libraries you may replace, and the fonts Inter and JetBrains "
    "Mono under the SIL Open Font License."
)
_ICON_SIZE, _WORDS_WIDTH = 96, 360


class AboutDialog(QDialog):
    """The small window behind About."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("about_dialog")
        self.setWindowTitle("About Pomona")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme = theme
        picture = QLabel()
        picture.setPixmap(app_icon(_ICON_SIZE))
        picture.setAccessibleName("The icon of Pomona")
        name = label("about_name", 19, QFont.Weight.DemiBold)
        name.setText("Pomona")
        version = label("about_version", 12)
        version.setText(f"Version {importlib.metadata.version('pomona')}")
        set_ink(version, theme.dim)
        words = label("about_words", 13, wrap=True)
        words.setText(_WORDS)
        words.setFixedWidth(_WORDS_WIDTH)
        self.licences_button = QPushButton("Licences…")
        self.licences_button.setObjectName("about_licences")
        self.licences_button.clicked.connect(self._on_licences)
        close = QPushButton("Close")
        close.setObjectName("about_close")
        close.setDefault(True)
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self.licences_button)
        buttons.addStretch()
        buttons.addWidget(close)
        beside = QVBoxLayout()
        beside.setSpacing(4)
        for part in (name, version, words):
            beside.addWidget(part)
        beside.addSpacing(10)
        beside.addLayout(buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(22, 20, 22, 18)
        row.setSpacing(18)
        row.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(beside)
        row.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)  # as high as its words need

    def _on_licences(self) -> None:
        LicencesDialog(self).open()


class LicencesDialog(QDialog):
    """All licences that go with Pomona, to read and to copy."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("licences_dialog")
        self.setWindowTitle("Licences")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.text = QPlainTextEdit()
        self.text.setObjectName("licences_text")
        self.text.setAccessibleName("Licences")
        self.text.setReadOnly(True)
        self.text.setFont(mono_font(11))
        self.text.setPlainText(licences())
        column = QVBoxLayout(self)
        column.addWidget(self.text)
        self.resize(720, 560)


def licences() -> str:
    """Those of what is installed, then those of the fonts."""
    fonts = [path.read_text(encoding="utf-8") for path in sorted((ASSETS / "fonts").glob("*OFL.txt"))]
    return "\n\n".join([as_text(components()), *fonts])


def app_icon(size: int) -> QPixmap:
    """The icon, ``size`` logical pixels square, at twice the density."""
    result = QPixmap(2 * size, 2 * size)
    result.setDevicePixelRatio(2)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    QSvgRenderer(str(ASSETS / "pomona.svg")).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return result
