"""What any request comes down to, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.answers import Guide
    from runtime.engine.frames import Sampling

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Ask:
    """``count`` answers to one prompt."""

    prompt: tuple[int, ...]
    sampling: Sampling
    max_tokens: int
    end_tokens: tuple[int, ...]
    stops: tuple[str, ...] = ()
    count: int = 1
    client: str = ""
    sorts: bool = True
    """Whether thoughts and tool calls are told apart from the answer."""
    goes_on: bool = False
    """Whether the answer goes on with the prompt's last words."""
    tools: tuple[dict[str, Any], ...] = ()
    """In OpenAI's form."""
    one_call: bool = False
    """Whether the answer ends with its first call."""
    new_guide: Callable[[], Guide] | None = None
    """For answers that follow a grammar; one for each."""


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token and what it was chosen from: text, bytes and natural logarithms of probabilities."""

    text: str
    utf8: bytes
    logprob: float
    top: tuple[tuple[str, bytes, float], ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """More of an answer, or of the thoughts before it."""

    kind: Literal["content", "reasoning"]
    text: str
    tokens: tuple[TokenInfo, ...] = ()
    """Those of the answer since the last piece, if their probabilities were asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    call_id: str
    name: str
    arguments: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Of two answers to the same prompt, which counts once."""
        return Usage(
            max(self.prompt_tokens, other.prompt_tokens),
            max(self.cached_tokens, other.cached_tokens),
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class End:
    """The end of one answer."""

    reason: FinishReason
    usage: Usage
    stop: str | None = None
    """The stop string that ended it."""


Event = Delta | Call | End
