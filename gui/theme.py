"""Colours and fonts: one frozen :class:`Theme` that all painting reads, so that nothing else names a colour.

macOS draws its own controls in its own style; only elsewhere does :func:`style_sheet` dress Qt's Fusion style.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette

ASSETS = Path(__file__).parent / "assets"
MONO_FAMILIES = ["SF Mono", "Menlo"] if sys.platform == "darwin" else ["JetBrains Mono"]


@dataclass(frozen=True, slots=True)
class Theme:
    """One appearance of the window."""

    dark: bool
    window: QColor
    surface: QColor
    """Cards and panes, which lie on the window."""
    raised: QColor
    """Bubbles and buttons, which lie on a surface."""
    track: QColor
    """The empty part of a bar."""
    line: QColor
    text: QColor
    dim: QColor
    """Secondary text; still readable (4.5 to 1) on window and surface."""
    faint: QColor
    """Marks that carry no text."""
    accent: QColor
    good: QColor
    warn: QColor
    bad: QColor
    hues: tuple[QColor, ...]
    """One per node, in order; neighbours are far apart on the colour wheel."""
    star: QColor
    """Marks a favourite."""
    keyword: QColor
    string: QColor
    number: QColor
    comment: QColor
    function: QColor

    def hue(self, index: int) -> QColor:
        """The colour of the node at ``index``; after eight nodes they begin again."""
        return self.hues[index % len(self.hues)]


def _colors(*names: str) -> tuple[QColor, ...]:
    return tuple(QColor(name) for name in names)


DARK = Theme(
    dark=True,
    window=QColor("#1b1b1d"),
    surface=QColor("#252528"),
    raised=QColor("#38383c"),
    track=QColor("#3a3a3f"),
    line=QColor(255, 255, 255, 28),
    text=QColor("#f5f5f7"),
    dim=QColor("#a3a3aa"),
    faint=QColor("#6f6f77"),
    accent=QColor("#0a7cf5"),
    good=QColor("#32d158"),
    warn=QColor("#ffa526"),
    bad=QColor("#ff6259"),
    hues=_colors("#0a7cf5", "#9a63f2", "#3cc8dd", "#e8508f", "#5bd08a", "#5e6bf0", "#e3b341", "#d9774c"),
    star=QColor("#f0b429"),
    keyword=QColor("#d08bf0"),
    string=QColor("#9fd089"),
    number=QColor("#e0a868"),
    comment=QColor("#8f949d"),
    function=QColor("#6cb6ff"),
)
LIGHT = Theme(
    dark=False,
    window=QColor("#f4f4f6"),
    surface=QColor("#ffffff"),
    raised=QColor("#ececef"),
    track=QColor("#e3e3e8"),
    line=QColor(0, 0, 0, 28),
    text=QColor("#1d1d1f"),
    dim=QColor("#66666b"),
    faint=QColor("#a6a6ac"),
    accent=QColor("#0071e3"),
    good=QColor("#1c7c36"),
    warn=QColor("#9a5200"),
    bad=QColor("#cf1322"),
    hues=_colors("#0071e3", "#8a4fe0", "#0b93ab", "#cf3a77", "#2a9d5c", "#4a57d8", "#b78414", "#b4552b"),
    star=QColor("#d99000"),
    keyword=QColor("#9b2393"),
    string=QColor("#a3261b"),
    number=QColor("#1c00cf"),
    comment=QColor("#5d6c79"),
    function=QColor("#1c5fb8"),
)


def luminance(color: QColor) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())


def contrast(one: QColor, other: QColor) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(color: QColor) -> QColor:
    """White where it can be read on ``color``, else almost black."""
    white = QColor("white")
    return white if contrast(white, color) >= 3.4 else QColor("#101114")


def faded(color: QColor, alpha: float) -> QColor:
    """``color`` at ``alpha`` (0 to 1) of its own opacity."""
    copy = QColor(color)
    copy.setAlphaF(color.alphaF() * alpha)
    return copy


def palette(theme: Theme) -> QPalette:
    """What Qt's own widgets take their colours from."""
    result = QPalette()
    role = QPalette.ColorRole
    for roles, color in (
        ((role.Window,), theme.window),
        ((role.Base,), theme.surface),
        ((role.AlternateBase, role.Button, role.Light, role.ToolTipBase), theme.raised),
        ((role.WindowText, role.Text, role.ButtonText, role.ToolTipText), theme.text),
        ((role.PlaceholderText,), theme.dim),
        ((role.Highlight, role.Accent, role.Link), theme.accent),
        ((role.HighlightedText,), ink_on(theme.accent)),
        ((role.Mid, role.Midlight, role.Dark), theme.track),
    ):
        for one in roles:
            result.setColor(one, color)
    for one in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, one, theme.dim)
    return result


@cache
def load_fonts() -> None:
    """Register the shipped fonts. macOS has its own, which fit its controls better."""
    if sys.platform == "darwin":
        return
    for path in sorted((ASSETS / "fonts").glob("*.[ot]tf")):
        if QFontDatabase.addApplicationFont(str(path)) < 0:
            raise RuntimeError(f"Qt cannot read the font {path.name}")


def interface_font() -> QFont:
    """The font of the whole application, in pixels, since points differ between systems."""
    if sys.platform == "darwin":
        return QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font = QFont("Inter")
    font.setPixelSize(13)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


@cache
def sized_font(pixels: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The application's font at another size and weight."""
    font = QFont(QGuiApplication.font())
    font.setPixelSize(pixels)
    font.setWeight(weight)
    return font


def mono_font(pixels: int) -> QFont:
    """The font of code."""
    font = QFont(MONO_FAMILIES)
    font.setPixelSize(pixels)
    font.setFixedPitch(True)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def style_sheet(theme: Theme) -> str:
    """Dress for Fusion on Linux: flat rounded buttons, thin scroll bars. Empty on macOS, which has its own."""
    if sys.platform == "darwin":
        return ""
    veil = "255,255,255" if theme.dark else "0,0,0"
    rest, hover, press = (0.12, 0.18, 0.26) if theme.dark else (0.07, 0.11, 0.17)
    accent, ink = theme.accent, ink_on(theme.accent).name()
    return f"""
QPushButton {{ background: rgba({veil},{rest}); color: {theme.text.name()}; border: 0; border-radius: 7px;
    padding: 6px 14px; min-height: 16px; }}
QPushButton:hover {{ background: rgba({veil},{hover}); }}
QPushButton:pressed {{ background: rgba({veil},{press}); }}
QPushButton:focus {{ border: 2px solid {accent.name()}; padding: 4px 12px; }}
QPushButton:disabled {{ color: {theme.dim.name()}; background: rgba({veil},{rest / 2}); }}
QPushButton[primary="true"] {{ background: {accent.name()}; color: {ink}; font-weight: 600; }}
QPushButton[primary="true"]:hover {{ background: {accent.lighter(112).name()}; }}
QPushButton[primary="true"]:pressed {{ background: {accent.darker(115).name()}; }}
QPushButton[primary="true"]:focus {{ border-color: {theme.text.name()}; }}
QPushButton[primary="true"]:disabled {{ background: rgba({veil},{rest / 2}); color: {theme.dim.name()}; }}
QPushButton[small="true"] {{ padding: 4px 12px; }}
QPushButton[small="true"]:focus {{ padding: 2px 10px; }}
QPushButton[quiet="true"] {{ background: transparent; color: {theme.dim.name()}; padding: 2px 8px; font-size: 12px; }}
QPushButton[quiet="true"]:hover {{ background: rgba({veil},{rest}); color: {theme.text.name()}; }}
QPushButton[quiet="true"]:checked {{ background: rgba({veil},{rest}); color: {theme.text.name()}; }}
QPushButton[quiet="true"]:focus {{ padding: 0 6px; }}
QPushButton::menu-indicator {{ image: none; width: 0; }}
QComboBox, QSpinBox, QDoubleSpinBox {{ background: rgba({veil},{rest}); color: {theme.text.name()}; border: 0;
    border-radius: 6px; padding: 2px 8px; min-height: 18px; selection-background-color: {accent.name()}; }}
QComboBox:hover, QSpinBox:hover, QDoubleSpinBox:hover {{ background: rgba({veil},{hover}); }}
QComboBox:focus, QSpinBox:focus, QDoubleSpinBox:focus {{ border: 2px solid {accent.name()}; padding: 0 6px; }}
QComboBox:disabled {{ color: {theme.dim.name()}; background: rgba({veil},{rest / 2}); }}
QComboBox::drop-down {{ border: 0; width: 16px; }}
QComboBox::down-arrow {{ image: none; width: 0; height: 0; }}
QComboBox QAbstractItemView {{ background: {theme.surface.name()}; color: {theme.text.name()}; border: 0;
    selection-background-color: {accent.name()}; outline: 0; }}
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button {{ width: 0; }}
QLineEdit {{ background: rgba({veil},{rest / 2}); color: {theme.text.name()}; border: 1px solid transparent;
    border-radius: 6px; padding: 3px 7px; selection-background-color: {accent.name()}; }}
QLineEdit:focus {{ border-color: {accent.name()}; }}
QProgressBar {{ background: {theme.track.name()}; border: 0; border-radius: 2px; }}
QProgressBar::chunk {{ background: {accent.name()}; border-radius: 2px; }}
QLineEdit#log_words, QWidget#bench_form QLineEdit {{ background: rgba({veil},{rest}); color: {theme.text.name()};
    border: 0; border-radius: 6px; padding: 2px 8px; min-height: 18px;
    selection-background-color: {accent.name()}; }}
QLineEdit#log_words:focus, QWidget#bench_form QLineEdit:focus {{ border: 2px solid {accent.name()};
    padding: 0 6px; }}
QWidget#bench_form QLineEdit[readOnly="true"] {{ color: {theme.dim.name()}; }}
QHeaderView {{ background: transparent; border: 0; }}
QHeaderView::section {{ background: transparent; color: {theme.dim.name()}; border: 0; padding: 2px 6px;
    font-size: 11px; }}
QTableWidget#bench_table {{ background: transparent; border: 0; }}
QListWidget#clients_programs, QPlainTextEdit#clients_text {{ background: {theme.window.name()};
    border: 1px solid {theme.track.name()}; border-radius: 8px; padding: 3px; }}
QListWidget#clients_programs::item {{ padding: 0 8px; border-radius: 5px; }}
QListWidget#clients_programs::item:selected {{ background: {accent.name()}; color: {ink}; }}
QPlainTextEdit#system_prompt {{ background: {theme.window.name()}; border: 1px solid {theme.track.name()};
    border-radius: 7px; padding: 3px; }}
QPlainTextEdit#system_prompt:focus {{ border-color: {accent.name()}; }}
QToolTip {{ background: {theme.raised.name()}; color: {theme.text.name()}; border: 1px solid {theme.track.name()};
    padding: 5px 7px; }}
QScrollBar:vertical {{ background: transparent; width: 11px; margin: 0; }}
QScrollBar::handle:vertical {{ background: rgba({veil},{0.28 if theme.dark else 0.24}); border-radius: 3px;
    min-height: 28px; margin: 2px 3px 2px 2px; }}
QScrollBar::handle:vertical:hover {{ background: rgba({veil},0.42); }}
QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QMenuBar {{ background: {theme.window.name()}; color: {theme.text.name()}; padding: 2px 16px; }}
QMenuBar::item {{ padding: 4px 9px; border-radius: 5px; background: transparent; }}
QMenuBar::item:selected {{ background: rgba({veil},{hover}); }}
QMenu {{ background: {theme.surface.name()}; color: {theme.text.name()}; border: 1px solid {theme.track.name()};
    padding: 5px; }}
QMenu::item {{ padding: 5px 26px 5px 26px; border-radius: 5px; }}
QMenu::item:selected {{ background: {accent.name()}; color: {ink}; }}
QMenu::item:disabled {{ color: {theme.dim.name()}; }}
QMenu::separator {{ height: 1px; background: {theme.track.name()}; margin: 5px 8px; }}
QSplitter::handle {{ background: transparent; }}
"""
