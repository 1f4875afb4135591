"""``pomona models``: every model on this machine and on the nodes in reach, what it can do and what it takes."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from runtime.agent.folder import data_folder, open_home
from runtime.agent.models.messages import HeldModel
from runtime.cli.model_nodes import nodes_in_reach
from runtime.cluster.catalogue import catalogue, is_favourite
from runtime.cluster.model_lists import models_on
from runtime.cluster.model_places import own_place, place_of
from runtime.models.favourites import Favourites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.catalogue import Catalogue, ModelPlace

_GB = 1e9


class ListedModel(HeldModel, frozen=True):
    """What ``--json`` prints of a model on a node."""

    node: str = ""
    node_id: str = ""
    favourite: bool = False


def run_list(*, only_here: bool, as_json: bool) -> int:
    """List the models; returns 0."""
    home = open_home(data_folder())
    places = asyncio.run(_places(home, only_here=only_here))
    favourites = Favourites(home.folder).all()
    if as_json:
        _out(msgspec.json.encode(listed(places, favourites)).decode())
    elif any(place.models for place in places) or favourites:
        _out("\n".join([*model_lines(catalogue(places, favourites)), "", *disk_lines(places)]))
    else:
        sys.stderr.write("There is no model on this machine yet; `pomona models fetch OWNER/NAME` gets one.\n")
    return 0


async def _places(home: Home, *, only_here: bool) -> list[ModelPlace]:
    here = await asyncio.to_thread(own_place, home)
    if only_here:
        return [here]
    nodes = [node for node in await nodes_in_reach(home) if node.resources.node_id != here.node_id]
    places = [here, *map(place_of, await models_on(home, nodes))]
    for place in places:
        if place.trouble:
            sys.stderr.write(f"pomona: {place.trouble}\n")
    return places


def listed(places: Sequence[ModelPlace], favourites: Sequence[str]) -> list[ListedModel]:
    """One entry for each model on each node."""
    return [
        ListedModel(
            **msgspec.structs.asdict(model),
            node=place.name,
            node_id=place.node_id,
            favourite=is_favourite(model, favourites),
        )
        for place in places
        for model in place.models
    ]


def model_lines(models: Catalogue) -> list[str]:
    """Each model once, and under it the nodes that have something of it; favourites first."""
    lines = []
    for listing in models.listings:
        if listing.facts is None:
            lines.append(f"{listing.full_name}, a favourite: on no node in reach")
            continue
        lines.append(_model_line(listing.holdings[0].model, is_favourite=listing.is_favourite))
        width = max(len(holding.place.name) for holding in listing.holdings)
        lines += [f"    {place.name:<{width}}  {_held_words(model)}" for place, model in listing.holdings]
    return lines


def disk_lines(places: Sequence[ModelPlace]) -> list[str]:
    """What models take on each node."""
    lines = []
    for place in places:
        free = f", {place.disk_free_bytes / _GB:.1f} GB free" if place.disk_free_bytes is not None else ""
        lines.append(f"{place.name}: {place.disk_bytes / _GB:.2f} GB of models{free}")
    return lines


def _model_line(model: HeldModel, *, is_favourite: bool) -> str:
    ways = [model.pipeline_refusal or "any split in stages"]
    if model.tensor_sizes:
        ways.append(f"tensor mode over {', '.join(map(str, model.tensor_sizes))} nodes")
    elif model.tensor_refusal:
        ways.append(f"no tensor mode: {model.tensor_refusal}")
    star = ", a favourite" if is_favourite else ""
    return (
        f"{model.repository or model.name}{star}: {model.layer_count} layers, {model.quantization}, "
        f"context {model.context_tokens}; {'; '.join(ways)}"
    )


def _held_words(model: HeldModel) -> str:
    layers = (
        "all layers" if model.layers_held == model.layer_count else f"{model.layers_held} of {model.layer_count} layers"
    )
    place = "" if model.is_ours else ", in a folder that is not Pomona's"
    return f"{layers}, {model.disk_bytes / _GB:.2f} GB{place}"


def _out(text: str) -> None:
    sys.stdout.write(f"{text}\n")
