"""What a controller and an agent say to each other about models: JSON over the agent's HTTPS and one WebSocket."""

from __future__ import annotations

from typing import Annotated

import msgspec

MODELS_PATH = "/v1/models"
HELD_PATH = "/v1/models/held"
FETCH_PATH = "/v1/models/fetch"
UNFINISHED_PATH = "/v1/models/unfinished"

_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Parts = Annotated[tuple[Annotated[str, msgspec.Meta(max_length=40)], ...], msgspec.Meta(max_length=10_000)]
_Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class HeldModel(msgspec.Struct, frozen=True):
    """A model as one node has it."""

    name: str
    repository: str
    revision: str
    layer_count: int
    layers_held: int
    disk_bytes: int
    is_ours: bool
    """In Pomona's store, and so Pomona's to delete; otherwise used where it is."""
    quantization: str
    context_tokens: int
    pipeline_refusal: str
    tensor_sizes: tuple[int, ...]
    """Numbers of nodes that can share each layer."""
    tensor_refusal: str = ""
    """Why two cannot; empty if some number can."""
    weight_bytes: int = 0
    """Of the whole model, wherever it is."""


class ModelOrder(msgspec.Struct, frozen=True):
    """Which model is meant."""

    name: _Text
    repository: _Text
    revision: _Text
    folder: _Text = ""
    """A full copy that may be used in place, if this node sees it and it is that very revision."""


class Held(msgspec.Struct, frozen=True):
    """What a node has of one model, and where it serves the bytes."""

    byte_port: _Port
    parts: _Parts
    """Those that it can give to others."""
    has_manifest: bool
    """Whether it knows what the model is made of."""
    converted: _Parts = ()
    """Those that it has for itself alone, in another dtype."""
    converts: bool = False
    """Whether it keeps what it fetches in another dtype, so that others cannot have it from here."""

    @property
    def all_parts(self) -> frozenset[str]:
        """What it need not fetch."""
        return frozenset((*self.parts, *self.converted))


class Removed(msgspec.Struct, frozen=True):
    """What deleting a model has freed."""

    freed_bytes: int


class PeerParts(msgspec.Struct, frozen=True):
    """A node to fetch from."""

    node_id: _Text
    name: _Text
    host: _Text
    port: _Port
    has: _Parts
    will_have: _Parts
    """What it is told to fetch itself."""
    bytes_per_second: float
    will_open: bool = False
    """Whether it is told to ask the hub what the model is made of, so that nobody else has to."""


class FetchOrder(msgspec.Struct, frozen=True):
    """Have these parts."""

    model: ModelOrder
    parts: _Parts
    peers: Annotated[tuple[PeerParts, ...], msgspec.Meta(max_length=64)]
    with_text: bool = False
    """Whether the tokenizer is wanted too."""
    use_hub: bool = True
    opens: bool = False
    """Whether no node knows what the model is made of, and this one asks the hub for all."""
    hub_token: _Text = ""
    """The person's, for a node that has none of its own. It is used for this fetch and never kept there."""


class FetchMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of what comes back."""


class FetchProgress(FetchMessage, frozen=True, tag="progress"):
    """How far it is."""

    done_bytes: int
    total_bytes: int
    bytes_per_second: float
    seconds_left: float | None
    from_source: dict[str, int]


class FetchDone(FetchMessage, frozen=True, tag="done"):
    """Everything is here; ``folder`` is what a worker loads."""

    folder: str
    from_source: dict[str, int]


class FetchFailed(FetchMessage, frozen=True, tag="failed"):
    """One sentence for a person. What came so far stays."""

    reason: str


AnyFetchMessage = FetchProgress | FetchDone | FetchFailed
