"""Every model on this machine and on the nodes in reach, each once, and who has what of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.agent.models.messages import HeldModel


class ModelPlace(NamedTuple):
    """A node with its models."""

    name: str
    node_id: str
    models: tuple[HeldModel, ...]
    disk_free_bytes: int | None
    trouble: str = ""
    """Why its models are not known, for a person."""

    @property
    def disk_bytes(self) -> int:
        """What its models take."""
        return sum(model.disk_bytes for model in self.models)


class Holding(NamedTuple):
    """What one node has of a model, all its copies together."""

    place: ModelPlace
    model: HeldModel


@dataclass(frozen=True, slots=True)
class Listing:
    """One model; without holdings it is a favourite that no node in reach has."""

    name: str
    repository: str
    revision: str
    is_favourite: bool
    holdings: tuple[Holding, ...] = ()

    @property
    def full_name(self) -> str:
        """How a person calls it: by the hub's name where it has one."""
        return self.repository or self.name

    @property
    def key(self) -> tuple[str, str]:
        return self.full_name, self.revision

    @property
    def facts(self) -> HeldModel | None:
        """What is known of the model, whoever has it: from the node with the most layers."""
        best = max(self.holdings, key=lambda holding: holding.model.layers_held, default=None)
        return best.model if best is not None else None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models, favourites first, and the places that were asked."""

    listings: tuple[Listing, ...] = ()
    places: tuple[ModelPlace, ...] = ()


def catalogue(places: Sequence[ModelPlace], favourites: Sequence[str]) -> Catalogue:
    """Each model once, favourites first, then by name; last the favourites that nobody has."""
    holdings: dict[tuple[str, str], list[Holding]] = {}
    for place in places:
        copies: dict[tuple[str, str], list[HeldModel]] = {}
        for model in place.models:
            copies.setdefault((model.repository or model.name, model.revision), []).append(model)
        for key, its in copies.items():
            holdings.setdefault(key, []).append(Holding(place, _together(its)))
    listings = []
    for found in holdings.values():
        model = found[0].model
        marked = is_favourite(model, favourites)
        listings.append(Listing(model.name, model.repository, model.revision, marked, tuple(found)))
    listings.sort(key=lambda listing: (not listing.is_favourite, listing.name.lower(), listing.revision))
    known = {name for listing in listings for name in (listing.repository, listing.name)}
    lost = [Listing(name.rpartition("/")[2], name, "", True) for name in favourites if name not in known]
    return Catalogue((*listings, *lost), tuple(places))


def _together(copies: Sequence[HeldModel]) -> HeldModel:
    """The copies of one node as one: the fullest, with the bytes of all that have something."""
    best = max(copies, key=lambda copy: (copy.layers_held, copy.is_ours))
    disk_bytes = sum(copy.disk_bytes for copy in copies if copy.layers_held or copy.is_ours)
    return msgspec.structs.replace(best, disk_bytes=disk_bytes, is_ours=any(copy.is_ours for copy in copies))


def is_favourite(model: HeldModel, favourites: Sequence[str]) -> bool:
    """Whether a person marked it, by either of its names."""
    return model.name in favourites or bool(model.repository and model.repository in favourites)
