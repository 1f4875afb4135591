"""The states of the pane about models that are rendered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gui import model_samples
from gui.formatting import GIB
from gui.models.fetches import FetchState
from gui.session_scenes import macs

if TYPE_CHECKING:
    from gui.window import Window


def _show(window: Window) -> None:
    window.models.show_models(model_samples.catalogue())
    window.models_pane.show_catalogue(model_samples.catalogue())
    window.show_pane("models")


def models(window: Window) -> None:
    """The model that the window shows, with what each node has of it."""
    macs(window)
    _show(window)
    window.models_desk.show_opened(model_samples.order_of(model_samples.deepseek(0)), Path("models"))
    window.models_pane.list.choose(model_samples.catalogue().listings[0].key)


def models_disks(window: Window) -> None:
    """No model is chosen: what they take on each disk."""
    macs(window)
    _show(window)


def models_fetching(window: Window) -> None:
    """Two nodes get their layers; the pane has the place of the split."""
    models(window)
    window.models_desk.show_fetches((model_samples.fetching(),))
    window.deck.set_enlarged(on=True)


def models_failed(window: Window) -> None:
    """A fetch that did not work."""
    models(window)
    trouble = "Mac mini: The disk has 21.3 GB free, of which a tenth of the disk stays free; make room there."
    window.models_desk.show_fetches((model_samples.fetching(FetchState.FAILED, trouble),))
    window.deck.set_enlarged(on=True)


def models_delete(window: Window) -> None:
    """Whether it shall be deleted on a node."""
    models(window)
    window.deck.set_enlarged(on=True)
    window.models_pane.detail.rows["studio-max"].delete.click()


def models_search(window: Window) -> None:
    """Found on the hub, without a model in the window yet."""
    window.show_nodes(())
    _show(window)
    pane = window.models_pane
    pane.field.setText("qwen3")
    found = model_samples.found()
    pane.show_found(found, "")
    name = found[0].id
    owner, _, short = name.partition("/")
    pane.show_description(name, model_samples.held(short, owner, 48, 0, 16 * GIB, context_tokens=40960), "")
    pane.list.choose((name, ""))


def models_no_hub(window: Window) -> None:
    """The hub does not answer, and nothing is here."""
    from runtime.cluster.catalogue import Catalogue

    window.models_pane.show_catalogue(Catalogue())
    window.show_pane("models")
    window.models_pane.field.setText("qwen3")
    window.models_pane.show_found(
        (), "The hub huggingface.co did not give an answer to the search in 5 attempts; try again later."
    )


SCENES = (models, models_disks, models_fetching, models_failed, models_delete, models_search, models_no_hub)
