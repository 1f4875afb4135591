"""The pane about models: all on the nodes in reach, those that the hub finds, and one of them whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from gui.models.detail import ModelDetail
from gui.models.list import Entry, ModelList
from gui.models.node_row import small_button
from gui.models.overview import Overview
from gui.models.view import Surroundings, found_view, listed_view
from gui.models.words import found_words, short_facts_words
from gui.widgets.labels import label, set_ink
from gui.widgets.panel import Panel
from runtime.cluster.catalogue import Catalogue

if TYPE_CHECKING:
    from gui.models.view import ModelView
    from gui.theme import Theme
    from runtime.agent.models.messages import HeldModel
    from runtime.cluster.catalogue import Listing
    from runtime.models.hub.repository import FoundModel

SEARCHING = "Searching the hub…"
FOUND = "On the hub"
NOTHING_FOUND = "The hub has none in MLX format"


class ModelsPane(Panel):
    """A list on the left, the chosen model on the right.

    Signals:
        open_wanted: A :class:`ModelOrder`: the window shall show this model.
        folder_wanted: A folder of a model is to be looked for.
        file_wanted: A file of a model is to be looked for.
        search_wanted: Words to look for on the hub.
        describe_wanted: The name of a model on the hub: what is it made of?
        mark_wanted: ``(name, on)``: a favourite, or none any more.
        keep_wanted: ``(ModelOrder, node id)``: keep a full copy there.
        delete_wanted: ``(ModelOrder, node id)``: delete it there.
        split_wanted: The nodes shall fetch what the split of the model that is open needs.
        pause_wanted: The key of a fetch.
        resume_wanted: The key of a fetch.
        end_wanted: The key of a fetch.
    """

    open_wanted = Signal(object)
    folder_wanted = Signal()
    file_wanted = Signal()
    search_wanted = Signal(str)
    describe_wanted = Signal(str)
    mark_wanted = Signal(str, bool)
    keep_wanted = Signal(object, str)
    delete_wanted = Signal(object, str)
    split_wanted = Signal()
    pause_wanted = Signal(str)
    resume_wanted = Signal(str)
    end_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Models", theme)
        self.setObjectName("models_pane")
        self.setMinimumSize(320, 182)
        self._catalogue = Catalogue()
        self._around = Surroundings()
        self._found: tuple[FoundModel, ...] = ()
        self._searched = ""
        """How the search on the hub stands, as the heading over what it found; empty while there was none."""
        self._described: dict[str, tuple[HeldModel | None, str]] = {}
        self.field = QLineEdit()
        self.field.setObjectName("model_search")
        self.field.setAccessibleName("Search models")
        self.field.setPlaceholderText("Filter, or Return to search the hub")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self._on_text)
        self.field.returnPressed.connect(self._on_search)
        self.trouble = label("search_trouble", 12, wrap=True)
        self.trouble.setContentsMargins(10, 0, 6, 0)
        self.trouble.hide()
        self.list = ModelList(theme)
        self.list.chosen.connect(self._show)
        self.list.opened.connect(self._on_opened)
        self.folder = small_button("Open Folder…", "open_folder")
        self.folder.setToolTip("A folder in MLX format: config.json, tokenizer and safetensors files")
        self.folder.clicked.connect(self.folder_wanted)
        self.file = small_button("Open File…", "open_file")
        self.file.setToolTip("The config.json or a .safetensors file of a model; its folder is what opens")
        self.file.clicked.connect(self.file_wanted)
        self.detail = ModelDetail(theme)
        self.overview = Overview(theme)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.overview)
        self._pages.addWidget(self.detail)
        self.body.addWidget(self._lay_out(), 1)
        self.setFocusProxy(self.field)
        self._connect_detail()
        self.set_theme(theme)
        self._fill()

    def _lay_out(self) -> QSplitter:
        left = QWidget()
        left.setMinimumWidth(190)
        column = QVBoxLayout(left)
        column.setContentsMargins(10, 4, 0, 8)
        column.setSpacing(6)
        column.addWidget(self.field)
        column.addWidget(self.trouble)
        column.addWidget(self.list, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        buttons.addWidget(self.folder)
        buttons.addWidget(self.file)
        buttons.addStretch(1)
        column.addLayout(buttons)
        right = QWidget()
        right.setMinimumWidth(220)
        beside = QVBoxLayout(right)
        beside.setContentsMargins(0, 4, 0, 4)
        beside.addWidget(self._pages)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(left)
        splitter.addWidget(right)
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(10)
        splitter.setStretchFactor(0, 2)
        splitter.setStretchFactor(1, 3)
        splitter.setSizes([250, 400])
        return splitter

    def _connect_detail(self) -> None:
        detail = self.detail
        detail.open_wanted.connect(self._on_open)
        detail.split_wanted.connect(self.split_wanted)
        detail.favourite_wanted.connect(self._on_favourite)
        detail.keep_wanted.connect(self._on_keep)
        detail.delete_wanted.connect(self._on_delete)
        detail.pause_wanted.connect(self.pause_wanted)
        detail.resume_wanted.connect(self.resume_wanted)
        detail.end_wanted.connect(self.end_wanted)

    # What is told -------------------------------------------------------------------------------------------------

    def show_catalogue(self, catalogue: Catalogue) -> None:
        """The models in reach are others."""
        if catalogue != self._catalogue:
            self._catalogue = catalogue
            self.overview.show_places(catalogue.places)
            self._fill()

    def show_surroundings(self, around: Surroundings) -> None:
        """Nodes, session, split or fetches are others."""
        if around != self._around:
            self._around = around
            self._fill()

    @property
    def surroundings(self) -> Surroundings:
        return self._around

    @Slot(object, str)
    def show_found(self, found: tuple[FoundModel, ...], trouble: str) -> None:
        """What the hub has, or why that is not known."""
        self._found, self._searched = found, FOUND if found else "" if trouble else NOTHING_FOUND
        self._say(trouble)
        self._fill()

    @Slot(str, object, str)
    def show_description(self, name: str, facts: HeldModel | None, trouble: str) -> None:
        """What a model on the hub is made of, or why that is not known."""
        self._described[name] = facts, trouble
        self._show(self.list.current_key)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        super().set_theme(theme)
        for part in (self.list, self.detail, self.overview):
            part.set_theme(theme)
        set_ink(self.trouble, theme.bad)

    # What a person does -------------------------------------------------------------------------------------------

    def _on_search(self) -> None:
        words = self.field.text().strip()
        if words:
            self._found, self._searched = (), SEARCHING
            self._say("")
            self._fill()
            self.search_wanted.emit(words)

    @Slot(object)
    def _on_opened(self, key: tuple[str, str]) -> None:
        self._show(key)
        self._on_open()

    def _on_open(self) -> None:
        view = self.detail.view
        if view is not None and view.open_reason is None:
            self.open_wanted.emit(view.order)

    def _on_favourite(self, on: bool) -> None:
        if self.detail.view is not None:
            self.mark_wanted.emit(self.detail.view.full_name, on)

    def _on_keep(self, node_id: str) -> None:
        if self.detail.view is not None:
            self.keep_wanted.emit(self.detail.view.order, node_id)

    def _on_delete(self, node_id: str) -> None:
        if self.detail.view is not None:
            self.delete_wanted.emit(self.detail.view.order, node_id)

    def _on_text(self) -> None:
        if not self.field.text():  # also what the hub has found is looked at no more
            self._found, self._searched = (), ""
        self._say("")
        self._fill()

    def _say(self, trouble: str) -> None:
        self.trouble.setText(trouble)
        self.trouble.setVisible(bool(trouble))
        set_ink(self.trouble, self.theme.bad)  # a style sheet took it back when the label got its parent

    # Inside -------------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        words = self.field.text().strip().lower()
        listed = [
            one for one in self._catalogue.listings if words in one.full_name.lower() or words in one.name.lower()
        ]
        entries = [self._listed_entry(listing) for listing in listed]
        if self._searched:
            known = {listing.repository for listing in listed}
            entries.append(Entry(None, self._searched))
            entries += [Entry((one.id, ""), one.id, found_words(one)) for one in self._found if one.id not in known]
        elif words:
            entries.append(Entry(None, "Return searches the hub"))
        elif not entries:
            entries.append(Entry(None, "No model is in reach yet"))
        self.list.show_entries(entries)
        self._show(self.list.current_key)

    def _listed_entry(self, listing: Listing) -> Entry:
        is_open = self._around.shows(*listing.key)
        return Entry(listing.key, listing.name, short_facts_words(listing), listing.is_favourite, is_open)

    @Slot(object)
    def _show(self, key: tuple[str, str] | None) -> None:
        view = self._view_of(key)
        if view is None:
            self._pages.setCurrentWidget(self.overview)
            return
        self.detail.show_view(view)
        self._pages.setCurrentWidget(self.detail)

    def _view_of(self, key: tuple[str, str] | None) -> ModelView | None:
        if key is None:
            return None
        listing = next((one for one in self._catalogue.listings if one.key == key), None)
        if listing is not None:
            return listed_view(listing, self._catalogue, self._around)
        found = next((one for one in self._found if one.id == key[0]), None)
        if found is None:
            return None
        if found.id not in self._described:
            self._described[found.id] = None, ""
            self.describe_wanted.emit(found.id)
        facts, trouble = self._described[found.id]
        favourites = [one.full_name for one in self._catalogue.listings if one.is_favourite]
        return found_view(found, facts, trouble, self._around, favourites)
