"""What the fields of several APIs have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=1 << 31)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seed = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Stops = Annotated[tuple[str, ...], Meta(max_length=16)]
ToolName = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_.-]{1,128}$")]
Client = Annotated[str, Meta(max_length=4096)]
Nothing = tuple[()]
TopK = Annotated[int, Meta(ge=0, le=1 << 31)]
Likelihood = Annotated[float, Meta(ge=0, le=1)]
Repetition = Annotated[float, Meta(gt=0, le=10)]
Answers = Annotated[int, Meta(ge=1, le=64)]
Alternatives = Annotated[int, Meta(ge=0, le=20)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what comes in: an unknown field is an error."""


class AnyText(Strict, frozen=True, tag_field="type", tag="text"):
    """An answer of any form."""


class JsonObject(Strict, frozen=True, tag_field="type", tag="json_object"):
    """An answer that is a JSON object."""
