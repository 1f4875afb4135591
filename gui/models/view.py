"""What the pane shows of one model, as a frozen value with every word and every reason in place. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import bytes_words
from gui.models.fetches import FetchState
from gui.models.words import disk_words, facts_words, found_words, held_words, pipeline_words, tensor_words
from runtime.agent.models.messages import ModelOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.models.fetches import Fetch
    from runtime.agent.models.messages import HeldModel
    from runtime.cluster.catalogue import Catalogue, Listing
    from runtime.cluster.nodes import KnownNode
    from runtime.models.hub.repository import FoundModel

LOCKED = "Stop the model that runs to choose another"
NOT_OPEN = "Open this model first: then the split is one of its layers"
RUNS = "Stop the model first: its nodes are using these layers"
NOT_OURS = "It is in a folder that is not Pomona's, so delete it there"
HAS_ALL = "It has all of it already"
NO_AGENT = "Pomona does not run as a node there"
FETCHING = "It is being fetched there; pause or cancel that first"


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node under a model; a reason says why a button cannot be pressed, None that it can."""

    node_id: str
    name: str
    words: str
    disk: str
    keep_reason: str | None
    delete_reason: str | None
    is_there: bool
    """Whether there is anything to delete."""
    question: str = ""
    """Asked before it is deleted."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model."""

    order: ModelOrder
    title: str
    origin: str
    """The hub's name and the revision, or that it is a folder."""
    facts: str
    pipeline: str
    tensor: str
    is_favourite: bool
    is_open: bool
    open_reason: str | None
    split_reason: str | None
    lines: tuple[NodeLine, ...] = ()
    fetches: tuple[Fetch, ...] = ()

    @property
    def full_name(self) -> str:
        return self.order.repository or self.order.name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides about the buttons, beside the model itself."""

    nodes: tuple[KnownNode, ...] = ()
    opened: ModelOrder | None = None
    """The model that the window shows."""
    runs: bool = False
    split_refusal: str | None = None
    """Why there is no split that could be fetched."""
    fetches: tuple[Fetch, ...] = ()

    def shows(self, full_name: str, revision: str) -> bool:
        """Whether the window shows this model."""
        opened = self.opened
        return opened is not None and (opened.repository or opened.name) == full_name and opened.revision == revision


def listed_view(listing: Listing, catalogue: Catalogue, around: Surroundings) -> ModelView:
    """A model that is somewhere in reach, or a favourite that is not."""
    facts = listing.facts
    is_open = around.shows(listing.full_name, listing.revision)
    fetches = tuple(fetch for fetch in around.fetches if fetch.is_of(listing.full_name, listing.revision))
    origin = f"{listing.repository} · {listing.revision[:8]}" if listing.repository and listing.revision else ""
    return ModelView(
        ModelOrder(listing.name, listing.repository, listing.revision),
        listing.name,
        origin or listing.repository or "Of no hub: a folder on these nodes",
        facts_words(facts) if facts else "No node in reach has it; opening it asks the hub",
        pipeline_words(facts) if facts else "",
        tensor_words(facts) if facts else "",
        listing.is_favourite,
        is_open,
        *_reasons(around, fetches, is_open=is_open),
        lines=_lines(listing, catalogue, around, fetches) if facts else (),
        fetches=fetches,
    )


def found_view(
    found: FoundModel, facts: HeldModel | None, trouble: str, around: Surroundings, favourites: Sequence[str]
) -> ModelView:
    """A model on the hub. ``facts`` are None until they are read, or if ``trouble`` says why they cannot be."""
    revision = facts.revision if facts else ""
    is_open = facts is not None and around.shows(found.id, revision)
    fetches = tuple(fetch for fetch in around.fetches if fetch.is_of(found.id, revision))
    order = ModelOrder(found.id.rpartition("/")[2], found.id, revision)
    lines = tuple(
        NodeLine(
            node.resources.node_id,
            node.resources.name,
            held_words(None),
            "",
            FETCHING if _fetches_on(node.resources.node_id, fetches) else None,
            None,
            is_there=False,
        )
        for node in around.nodes
    )
    return ModelView(
        order,
        order.name,
        f"{found.id} · {found_words(found)}",
        trouble or (facts_words(facts) if facts else "Reading what it is made of…"),
        pipeline_words(facts) if facts else "",
        tensor_words(facts) if facts else "",
        found.id in favourites,
        is_open,
        *_reasons(around, fetches, is_open=is_open),
        lines=lines if facts else (),
        fetches=fetches,
    )


def _reasons(around: Surroundings, fetches: tuple[Fetch, ...], *, is_open: bool) -> tuple[str | None, str | None]:
    """Why it cannot be opened, and why not be fetched for the split."""
    open_reason = "It is the model that the window shows" if is_open else LOCKED if around.runs else None
    if not is_open:
        return open_reason, NOT_OPEN
    if around.runs:
        return open_reason, "Its nodes have what they need: it runs"
    if any(fetch.for_split and fetch.state is FetchState.RUNNING for fetch in fetches):
        return open_reason, "Its nodes are getting their layers"
    return open_reason, around.split_refusal


def _lines(
    listing: Listing, catalogue: Catalogue, around: Surroundings, fetches: tuple[Fetch, ...]
) -> tuple[NodeLine, ...]:
    held = {holding.place.node_id: holding.model for holding in listing.holdings}
    in_reach = {node.resources.node_id for node in around.nodes}
    runs = around.runs and around.shows(listing.full_name, listing.revision)
    lines = []
    for place in catalogue.places:
        model = held.get(place.node_id)
        if model is None and place.node_id not in in_reach:
            continue
        busy = FETCHING if _fetches_on(place.node_id, fetches) else None
        keep = delete = busy
        if model is not None and model.layers_held == model.layer_count:
            keep = HAS_ALL
        elif place.node_id not in in_reach:
            keep = NO_AGENT
        if model is not None and not model.is_ours:
            delete = NOT_OURS
        elif runs:
            delete = RUNS
        name = listing.name
        lines.append(
            NodeLine(
                place.node_id,
                place.name,
                held_words(model),
                disk_words(place),
                keep,
                delete,
                is_there=model is not None,
                question=f"Delete {name} on {place.name}? {_freed_words(model)}" if model is not None else "",
            )
        )
    return tuple(lines)


def _freed_words(model: HeldModel) -> str:
    return f"{bytes_words(model.disk_bytes)} are free then."


def _fetches_on(node_id: str, fetches: tuple[Fetch, ...]) -> bool:
    return any(
        fetch.state is FetchState.RUNNING and any(node.node_id == node_id for node in fetch.nodes) for fetch in fetches
    )
