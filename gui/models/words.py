"""What the window says of models: pure words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.formatting import and_words, bytes_words, context_words, count_words

if TYPE_CHECKING:
    from runtime.agent.models.messages import HeldModel
    from runtime.cluster.catalogue import Listing, ModelPlace
    from runtime.models.hub.repository import FoundModel

_NAMED_NODES = 2
"""More than so many are counted instead."""


def facts_words(facts: HeldModel) -> str:
    """What it is made of: ``30 layers · 115 MB · 4 bits · 8k context``."""
    size = bytes_words(facts.weight_bytes or facts.disk_bytes)
    layers = count_words(facts.layer_count, "layer")
    return f"{layers} · {size} · {facts.quantization} · {context_words(facts.context_tokens)} context"


def short_facts_words(listing: Listing) -> str:
    """For one line of a list: ``115 MB · 4 bits · on Studio``."""
    facts = listing.facts
    if facts is None:
        return "on no node in reach"
    return f"{bytes_words(facts.weight_bytes or facts.disk_bytes)} · {facts.quantization} · {where_words(listing)}"


def where_words(listing: Listing) -> str:
    """Who has it: ``on Studio``, ``on 4 nodes``, ``parts on Studio and mini``."""
    whole = [place.name for place, model in listing.holdings if model.layers_held == model.layer_count]
    if whole:
        return f"on {_names(whole)}"
    some = [place.name for place, model in listing.holdings if model.layers_held]
    return f"parts on {_names(some)}" if some else "no layers fetched yet"


def _names(names: list[str]) -> str:
    return and_words(names) if len(names) <= _NAMED_NODES else f"{len(names)} nodes"


def pipeline_words(facts: HeldModel) -> str:
    """Whether it can be split into stages, and why not."""
    return facts.pipeline_refusal or "Any split of its layers over nodes"


def tensor_words(facts: HeldModel) -> str:
    """Over how many nodes each layer can be shared, and why not over others."""
    if facts.tensor_sizes:
        return f"Over {_or_words([str(size) for size in facts.tensor_sizes])} nodes"
    return facts.tensor_refusal or "Not known for this model"


def _or_words(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def held_words(model: HeldModel | None) -> str:
    """What a node has: ``all 30 layers · 257 MB``, ``19 of 61 layers · 103.0 GB``."""
    if model is None:
        return "Nothing of it"
    if not model.layers_held:
        return "No layers, only what describes it"
    layers = count_words(model.layer_count, "layer")
    held = f"All {layers}" if model.layers_held == model.layer_count else f"{model.layers_held} of {layers}"
    return f"{held} · {bytes_words(model.disk_bytes)}"


def disk_words(place: ModelPlace) -> str:
    """What models take on a node, and what is free there."""
    if place.trouble:
        return place.trouble
    free = f" · {bytes_words(place.disk_free_bytes)} free" if place.disk_free_bytes is not None else ""
    return f"{bytes_words(place.disk_bytes)} of models{free}" if place.disk_bytes else f"No models{free}"


def found_words(found: FoundModel) -> str:
    """What the hub says of one that it has found."""
    gated = " · asks for permission" if found.gated else ""
    return f"{count_words(found.downloads, 'download')}{gated}".replace(str(found.downloads), f"{found.downloads:,}", 1)
