"""What the driver knows of a request that is under way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.engine.frames import Submit


@dataclass(slots=True)
class Request:
    """A request that has caches, or had them and waits for them again."""

    submit: Submit
    max_tokens: int
    turn: int
    """Counts requests in the order in which they began first."""
    sequence: int = 0
    """Its number in the stages' caches; another one each time that it begins."""
    cached_tokens: int = 0
    sent: list[int] = field(default_factory=list)
    """Tokens that have gone down the pipeline: what every stage's caches hold once they have done their steps."""
    prompt_left: deque[int] = field(default_factory=deque)
    """What has to go down before a token can be chosen, as far as it has not been sent: the prompt without its last
    token, or after a pause the prompt and the answer so far."""
    next_token: int = 0
    """What the next decode step takes: the prompt's last token, which goes alone because only its logits are wanted
    (as in mlx-lm), then the newest token."""
    snapshots: deque[int] = field(default_factory=deque)
    """Lengths at which a copy of the caches is to be kept, ascending."""
    generated: int = 0

    @property
    def held_tokens(self) -> int:
        """What its caches hold after the step that takes the newest token."""
        return len(self.submit.prompt) + self.generated

    def begin(self, sequence: int) -> tuple[int, ...]:
        """Begin, or begin again after a pause, in empty caches. Returns all of its tokens so far."""
        tokens = (*self.sent, *self.prompt_left, self.next_token) if self.sequence else self.submit.prompt
        self.sequence = sequence
        self.cached_tokens = 0
        self.sent, self.prompt_left, self.next_token = [], deque(tokens[:-1]), tokens[-1]
        self.snapshots.clear()
        return tokens

    def skip(self, token_count: int) -> None:
        """So many of the first tokens are in its caches already."""
        self.cached_tokens = token_count
        for _ in range(token_count):
            self.sent.append(self.prompt_left.popleft())
