"""``pomona models``: every model on this machine and on the nodes in reach, what it can do and what it takes."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from runtime.agent.folder import data_folder, open_home
from runtime.agent.models.inventory import held_models
from runtime.agent.models.messages import HeldModel
from runtime.cli.model_nodes import nodes_in_reach
from runtime.cluster.model_lists import models_on
from runtime.cluster.model_names import own_library
from runtime.models.favourites import Favourites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home

THIS_MACHINE = "this machine"
_GB = 1e9


class ListedModel(HeldModel, frozen=True):
    """What ``--json`` prints of a model on a node."""

    node: str = ""
    node_id: str = ""
    favourite: bool = False


class Place(NamedTuple):
    """A node with its models, as it is listed."""

    name: str
    node_id: str
    models: tuple[HeldModel, ...]
    disk_free_bytes: int | None


def run_list(*, only_here: bool, as_json: bool) -> int:
    """List the models; returns 0."""
    home = open_home(data_folder())
    places = asyncio.run(_places(home, only_here=only_here))
    favourites = Favourites(home.folder).all()
    if as_json:
        _out(msgspec.json.encode(listed(places, favourites)).decode())
    elif any(place.models for place in places) or favourites:
        _out("\n".join([*model_lines(places, favourites), "", *disk_lines(places)]))
    else:
        sys.stderr.write("There is no model on this machine yet; `pomona models fetch OWNER/NAME` gets one.\n")
    return 0


async def _places(home: Home, *, only_here: bool) -> list[Place]:
    here = await asyncio.to_thread(held_models, own_library(home))
    own_id = home.identity.node_id
    free = await asyncio.to_thread(shutil.disk_usage, home.folder)
    places = [Place(THIS_MACHINE, own_id, tuple(here), free.free)]
    if only_here:
        return places
    nodes = [node for node in await nodes_in_reach(home) if node.resources.node_id != own_id]
    for found in await models_on(home, nodes):
        resources = found.node.resources
        if found.trouble:
            sys.stderr.write(f"pomona: {found.trouble}\n")
        places.append(Place(resources.name, resources.node_id, found.models, resources.disk_free_bytes))
    return places


def listed(places: Sequence[Place], favourites: Sequence[str]) -> list[ListedModel]:
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


def model_lines(places: Sequence[Place], favourites: Sequence[str]) -> list[str]:
    """Each model once, and under it the nodes that have something of it; favourites first."""
    holders: dict[tuple[str, str], list[tuple[Place, HeldModel]]] = {}
    for place in places:
        for model in place.models:
            holders.setdefault((model.repository or model.name, model.revision), []).append((place, model))
    lines = []
    by_name = sorted(holders.values(), key=lambda its: (not is_favourite(its[0][1], favourites), its[0][1].name))
    for its in by_name:
        lines.append(_model_line(its[0][1], is_favourite=is_favourite(its[0][1], favourites)))
        width = max(len(place.name) for place, _model in its)
        lines += [f"    {place.name:<{width}}  {_held_words(model)}" for place, model in its]
    known = {name for its in holders.values() for _place, model in its for name in (model.repository, model.name)}
    lines += [f"{name}, a favourite: on no node in reach" for name in favourites if name not in known]
    return lines


def disk_lines(places: Sequence[Place]) -> list[str]:
    """What models take on each node."""
    lines = []
    for place in places:
        used = sum(model.disk_bytes for model in place.models)
        free = f", {place.disk_free_bytes / _GB:.1f} GB free" if place.disk_free_bytes is not None else ""
        lines.append(f"{place.name}: {used / _GB:.2f} GB of models{free}")
    return lines


def is_favourite(model: HeldModel, favourites: Sequence[str]) -> bool:
    """Whether a person marked it, by either of its names."""
    return model.name in favourites or bool(model.repository and model.repository in favourites)


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
