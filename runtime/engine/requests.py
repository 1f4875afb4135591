"""What the driver knows of the requests and steps that are under way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.engine.frames import Submit
    from runtime.engine.groups import Group


@dataclass(slots=True)
class Request:
    """A request that has caches."""

    submit: Submit
    sequence: int
    max_tokens: int
    cached_tokens: int = 0
    sent: list[int] = field(default_factory=list)
    """Tokens that have gone down the pipeline: what every stage's caches hold once they have done their steps."""
    prompt_left: deque[int] = field(default_factory=deque)
    """The prompt without its last token, as far as it has not been sent."""
    next_token: int = 0
    """What the next decode step takes: the prompt's last token, which goes alone because only its logits are wanted
    (as in mlx-lm), then the newest token."""
    snapshots: deque[int] = field(default_factory=deque)
    """Lengths at which a copy of the caches is to be kept, ascending."""
    generated: int = 0

    @property
    def reserved_tokens(self) -> int:
        return len(self.submit.prompt) + self.max_tokens


@dataclass(frozen=True, slots=True)
class Flight:
    """A step that has not come back."""

    begin_seconds: float
    width: int
    requests: tuple[int, ...]
    group: Group | None
    """None for a chunk of a prompt."""
    prompt_tokens: int = 0
