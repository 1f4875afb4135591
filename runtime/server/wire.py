"""What the fields of several APIs have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from runtime.server.errors import refused
from runtime.server.wishes import Wishes

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


class StreamOptions(Strict, frozen=True):
    """What a stream ends with."""

    include_usage: bool | None = None
    include_obfuscation: None = None


class Streamed(Strict, frozen=True, kw_only=True):
    """Whether the answer comes in pieces."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def check_stream(self) -> None:
        """Raises :class:`ApiError` for options without a stream."""
        if self.stream_options is not None and not self.stream:
            raise refused("stream_options", "'stream_options' needs 'stream' to be true.")

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


class Chosen(Streamed, frozen=True, kw_only=True):
    """How an answer is chosen, in OpenAI's older APIs; the last four fields are other servers'."""

    n: Answers | None = None
    stop: str | Stops | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, float] | None = None
    seed: Seed | None = None
    top_k: TopK | None = None
    min_p: Likelihood | None = None
    repetition_penalty: Repetition | None = None
    ignore_eos: bool | None = None

    def wishes(self, logprobs: int) -> Wishes:
        """All of it but the length; ``logprobs`` alternatives are told of each token, -1 tells nothing."""
        return Wishes(
            self.temperature,
            self.top_p,
            self.top_k,
            self.min_p,
            self.repetition_penalty,
            self.presence_penalty,
            self.frequency_penalty,
            self.logit_bias or {},
            self.seed,
            logprobs,
        )

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """Raises :class:`ApiError` for one that ends nothing."""
        stops = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        if "" in stops:
            raise refused("stop", "Invalid 'stop': an empty string ends nothing.")
        return stops


class AnyText(Strict, frozen=True, tag_field="type", tag="text"):
    """An answer of any form."""


class JsonObject(Strict, frozen=True, tag_field="type", tag="json_object"):
    """An answer that is a JSON object."""
