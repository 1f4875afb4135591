"""Both appearances can be read, and the shipped fonts are the ones that are used."""

import sys
from itertools import pairwise

import pytest
from PySide6.QtGui import QColor, QFontInfo, QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication, QLabel

from gui import samples
from gui.appearance import Appearance, Choice
from gui.icons import pixmap
from gui.theme import ASSETS, DARK, LIGHT, contrast, faded, ink_on, mono_font, sized_font

THEMES = pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])


@THEMES
def test_text_and_secondary_text_can_be_read_on_every_ground(theme):
    for ground in (theme.window, theme.surface):
        for ink in (theme.text, theme.dim):
            assert contrast(ink, ground) >= 4.5, (ink.name(), ground.name())
    assert contrast(theme.text, theme.raised) >= 4.5


@THEMES
def test_words_of_state_can_be_read_on_a_card(theme):
    for ink in (theme.good, theme.warn, theme.bad):
        assert contrast(ink, theme.surface) >= 4.5, ink.name()


@THEMES
def test_layer_counts_can_be_read_on_every_hue(theme):
    for hue in theme.hues:
        assert contrast(ink_on(hue), hue) >= 3.4, hue.name()


@THEMES
def test_neighbours_on_the_bar_differ_in_hue(theme):
    angles = [hue.hslHue() for hue in theme.hues]
    for one, other in pairwise([*angles, angles[0]]):
        distance = abs(one - other) % 360
        assert min(distance, 360 - distance) >= 20, (one, other)


@THEMES
def test_code_can_be_read_on_its_ground(theme):
    for ink in (theme.keyword, theme.string, theme.number, theme.comment, theme.function):
        assert contrast(ink, theme.window) >= 4.5, ink.name()


def test_after_the_last_hue_they_begin_again():
    assert DARK.hue(len(DARK.hues)) == DARK.hue(0)


def test_fading_keeps_the_colour_and_leaves_the_theme_alone():
    color = faded(DARK.accent, 0.5)
    assert color.alphaF() == pytest.approx(0.5, abs=0.01)
    assert DARK.accent.alphaF() == 1


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS uses its own fonts")
def test_the_shipped_fonts_are_used(dressed):
    assert QFontInfo(dressed.font()).family() == "Inter"
    assert QFontInfo(mono_font(12)).family() == "JetBrains Mono"


def test_figures_are_all_as_wide_as_each_other_so_that_numbers_do_not_dance(dressed):
    metrics = QFontMetricsF(sized_font(22))
    assert len({metrics.horizontalAdvance(figure) for figure in "0123456789"}) == 1


def test_every_font_has_its_licence_beside_it():
    fonts = {path.name.split("-")[0] for path in (ASSETS / "fonts").glob("*.[ot]tf")}
    licences = {path.name.split("-")[0] for path in (ASSETS / "fonts").glob("*-OFL.txt")}
    assert fonts == licences
    assert fonts


def test_every_icon_can_be_tinted(dressed):
    names = sorted(path.stem for path in (ASSETS / "icons").glob("*.svg"))
    assert names
    for name in names:
        image = pixmap(name, QColor("#ff0000"), 16).toImage()
        reds = [
            image.pixelColor(x, y)
            for x in range(image.width())
            for y in range(image.height())
            if image.pixelColor(x, y).alpha() > 200
        ]
        assert reds, name
        assert all(color.red() > 200 and color.green() < 60 for color in reds), name


def test_choosing_an_appearance_changes_theme_and_palette_at_once(qtbot, appearance):
    with qtbot.waitSignal(appearance.theme_changed) as told:
        appearance.choose(Choice.LIGHT)
    assert told.args == [LIGHT]
    assert QApplication.palette().color(QPalette.ColorRole.Window) == LIGHT.window


def test_choosing_the_same_again_tells_nobody(qtbot, dressed):
    appearance = Appearance(Choice.LIGHT)
    with qtbot.assertNotEmitted(appearance.theme_changed):
        appearance.choose(Choice.LIGHT)


def test_a_theme_that_comes_before_new_words_are_shown_reaches_them(demo_window, appearance):
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    QApplication.processEvents()
    demo_window.store.move_boundary(0, 13)  # makes words that were never shown
    appearance.choose(Choice.LIGHT)
    QApplication.processEvents()
    (words,) = (one for one in demo_window.strip.findChildren(QLabel) if one.text().startswith("loads 3 layers"))
    assert words.palette().color(QPalette.ColorRole.WindowText) == LIGHT.dim
