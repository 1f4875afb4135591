"""What is on the screen, beside what a repaint of everything would show."""

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QWidget


def on_screen(widget: QWidget) -> QImage:
    """What a widget has on the screen once all that is due was painted."""
    QApplication.processEvents()
    window = widget.window()
    screen = QGuiApplication.primaryScreen().grabWindow(window.winId())
    ratio = screen.devicePixelRatio()
    return screen.toImage().copy(QRect(widget.mapTo(window, QPoint(0, 0)) * ratio, widget.size() * ratio))


def afresh(widget: QWidget) -> QImage:
    """The same after all of its window was painted anew."""
    widget.window().repaint()
    return on_screen(widget)
