"""About, and the licences behind it."""

import importlib.metadata

from PySide6.QtWidgets import QDialog, QLabel

from gui.about import LicencesDialog, app_icon, licences


def test_about_says_the_version_and_leads_to_the_licences(window):
    window.show()
    window.menus.about.trigger()
    (about,) = [each for each in window.findChildren(QDialog) if each.isVisible()]
    words = " ".join(each.text() for each in about.findChildren(QLabel))
    assert importlib.metadata.version("pomona") in words
    assert "LGPL" in words
    about.licences_button.click()
    (shown,) = about.findChildren(LicencesDialog)
    assert "mlx-lm" in shown.text.toPlainText()
    shown.close()
    about.close()


def test_the_fonts_licences_are_among_them():
    assert licences().count("SIL OPEN FONT LICENSE") >= 2


def test_the_icon_is_drawn(qapp):
    image = app_icon(32).toImage()
    assert image.width() == 64
    assert image.pixelColor(32, 32).alpha() == 255
