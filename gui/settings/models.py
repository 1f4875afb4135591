"""Settings about models: how new ones are arranged, where they are kept, and the hub's token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit

from gui.formatting import bytes_words, context_words
from gui.settings.page import Page, button
from gui.split.strip_view import GOAL_NAMES
from gui.widgets.labels import ElidedLabel, set_ink
from gui.widgets.pop_up import PopUp

if TYPE_CHECKING:
    from gui.preferences import Preferences
    from gui.theme import Theme
    from runtime.cluster.model_desk import Keeping

_CONTEXTS = tuple(2**power for power in range(11, 18))


class ModelsPage(Page):
    """How new models are arranged, where they are kept, and the hub's token.

    Signals:
        folder_wanted: A folder for new models, None for the usual place.
        token_wanted: The hub's token to keep; empty forgets it.
    """

    folder_wanted = Signal(object)
    token_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("settings_models", "Models")
        self.dialog: QFileDialog | None = None
        self.goal, self.context = PopUp(theme), PopUp(theme)
        self.goal.setObjectName("setting_goal")
        self.goal.setAccessibleName("A new model's layers")
        for goal in ("even", "chat", "requests", "room"):
            self.goal.addItem(GOAL_NAMES[goal], goal)
        self.goal.activated.connect(self._on_goal)
        self.context.setObjectName("setting_context")
        self.context.setAccessibleName("A new model's context in tokens")
        self.context.addItem("Usual: 8k", None)
        for tokens in _CONTEXTS:
            self.context.addItem(context_words(tokens), tokens)
        self.context.activated.connect(self._on_context)
        self.add("New model", self.goal, hint="How its layers are shared out before you move a boundary.")
        self.add(
            "Context",
            self.context,
            hint="Tokens of prompt and answer together that memory is kept for; less if the "
            "model was made for less. Models that you have arranged keep their own.",
        )
        self.folder = ElidedLabel("setting_folder", 13)
        self.choose = button("Choose…", "choose_models_folder")
        self.choose.setToolTip("Keep models that come from now on in another folder")
        self.choose.clicked.connect(self._on_choose)
        self.usual = button("Usual Place", "usual_models_folder")
        self.usual.clicked.connect(self._on_usual)
        self._folder_hint = self.add("Kept in", self.folder, self.choose, self.usual, hint=" ", stretch=True)
        self.token = QLineEdit()
        self.token.setObjectName("setting_token")
        self.token.setAccessibleName("Hugging Face token")
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.setPlaceholderText("hf_…")
        self.token.textChanged.connect(self._allow)
        self.token.returnPressed.connect(self._on_save)
        self.save = button("Save", "save_token")
        self.save.clicked.connect(self._on_save)
        self.forget = button("Forget", "forget_token")
        self.forget.clicked.connect(self._on_forget)
        self._token_hint = self.add("Hugging Face", self.token, self.save, self.forget, hint=" ", stretch=True)
        self.finish()
        self._is_ours = False
        self._allow()

    def show_preferences(self, preferences: Preferences) -> None:
        super().show_preferences(preferences)
        self.goal.setCurrentIndex(self.goal.findData(preferences.goal))
        self.context.setCurrentIndex(max(self.context.findData(preferences.context_tokens), 0))

    def show_keeping(self, now: Keeping, trouble: str) -> None:
        """Where models are kept and where the token is from."""
        self.folder.setText(str(now.folder))
        self.folder.setToolTip(str(now.folder))
        self.folder.setAccessibleName(f"New models are kept in {now.folder}")
        self.usual.setEnabled(not now.is_usual)
        self.usual.setToolTip("It is the usual place already" if now.is_usual else "Pomona's own folder")
        self.say(
            self._folder_hint,
            trouble or f"{bytes_words(now.disk_free_bytes)} free. Models that are elsewhere stay there and are used.",
        )
        self._is_ours = now.token_is_ours
        words = f"In use is the one from {now.token_source}." if now.token_source else "There is none yet."
        self.say(self._token_hint, f"A token for models that ask for permission. {words}")
        self._allow()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        set_ink(self.folder, theme.text)
        for part in (self.goal, self.context):
            part.set_theme(theme)

    def _allow(self) -> None:
        typed = bool(self.token.text().strip())
        self.save.setEnabled(typed)
        self.save.setToolTip("Keep it for you alone, on this Mac" if typed else "Paste a token first")
        self.forget.setEnabled(self._is_ours)
        self.forget.setToolTip("Delete it from this Mac" if self._is_ours else "Pomona keeps none")

    def _on_goal(self) -> None:
        self.change(goal=self.goal.currentData())

    def _on_context(self) -> None:
        self.change(context_tokens=self.context.currentData())

    def _on_save(self) -> None:
        token = self.token.text().strip()
        if token:
            self.token.clear()
            self.token_wanted.emit(token)

    def _on_forget(self) -> None:
        self.token_wanted.emit("")

    def _on_usual(self) -> None:
        self.folder_wanted.emit(None)

    def _on_choose(self) -> None:
        if self.dialog is not None:
            return
        dialog = self.dialog = QFileDialog(self, "Keep Models In")
        dialog.setObjectName("models_folder_dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_folder(self, path: str) -> None:
        self.folder_wanted.emit(Path(path))

    def _on_closed(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
