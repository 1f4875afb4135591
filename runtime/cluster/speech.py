"""What a model says, sorted: its answer, its thoughts, and the tools that it calls.

mlx-lm knows the marks of each model family; the state machine that looks for them in text is its own, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mlx_lm.generate import TextStateMachine, make_text_state_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["content", "reasoning", "call"]


class Said(NamedTuple):
    """A piece of the answer or of the thoughts, or the whole text between the marks of a tool call."""

    kind: Kind
    text: str


class Speech:
    """Sorts one answer. Text in, as it comes; marks are left out, and what may be the beginning of one is held back."""

    def __init__(self, tokenizer: Any, prompt: Sequence[int], *, with_calls: bool) -> None:
        """``tokenizer`` is mlx-lm's wrapper, and ``prompt`` tells whether the model is thinking already.

        Without ``with_calls`` a call is plain answer.
        """
        self._tokenizer = tokenizer
        self._with_calls = with_calls
        machine = make_text_state_machine(self._tokenizer)
        self._state: Any = machine.make_state(self._initial(prompt))
        self._call: list[str] = []
        self._in_call = False
        self._gap: str | None = None
        """White space after a mark, as long as nothing else has come."""
        self._gap_counts = False
        """Whether it is part of an answer that goes on."""
        self._was_closed = True

    @property
    def visible(self) -> bool:
        """Whether what comes now belongs to the answer."""
        return bool(self._state[0] == "normal")

    @property
    def thinking(self) -> bool:
        """Whether what comes now are thoughts."""
        return bool(self._state[0] == "reasoning")

    def add(self, text: str) -> list[Said]:
        """What ``text`` completes."""
        self._state, segments = TextStateMachine.split(self._state, text)
        return [said for state, piece in segments for said in self._sort(state, piece)]

    def finish(self) -> list[Said]:
        """What was held back, and a call that was not closed."""
        self._state, rest, state = TextStateMachine.flush(self._state)
        said = self._sort(state, rest)
        if self._in_call:
            self._was_closed = False
            said += self._close_call()
        return said

    def _initial(self, prompt: Sequence[int]) -> str:
        tokenizer = self._tokenizer
        if tokenizer.response_initial_state:
            return str(tokenizer.response_initial_state)
        tokens = list(prompt)
        if tokenizer.has_thinking and tokenizer.rfind_think_start(tokens) > tokenizer.rfind_think_end(tokens):
            return "reasoning"
        return "normal"

    def _sort(self, state: str, text: str) -> list[Said]:
        said: list[Said] = []
        if state == "tool":
            self._in_call = True
            self._call.append(text)
            return said
        if self._in_call:
            said += self._close_call()
        if state == "reasoning":
            self._gap, self._gap_counts = "", False
            if text:
                said.append(Said("reasoning", text))
        elif state == "normal" and (shown := self._without_gap(text)):
            said.append(Said("content", shown))
        return said

    def _without_gap(self, text: str) -> str:
        """Families put empty lines after thoughts and between calls, which are not part of the answer."""
        if self._gap is None:
            return text
        self._gap += text
        shown = self._gap.lstrip()
        if not shown:
            return ""
        whole, self._gap = self._gap, None
        return whole if self._gap_counts else shown

    def _close_call(self) -> list[Said]:
        text = "".join(self._call)
        self._call.clear()
        self._in_call = False
        if not self._with_calls:
            return [Said("content", self.marked(text))]
        self._gap, self._gap_counts = "", True
        return [Said("call", text)]

    def marked(self, call: str) -> str:
        """The text of the newest call with the marks that it had."""
        end = self._tokenizer.tool_call_end if self._was_closed else ""
        return f"{self._tokenizer.tool_call_start}{call}{end}"
