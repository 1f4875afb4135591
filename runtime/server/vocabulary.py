"""A model's vocabulary as bytes: for probabilities of tokens, and for grammars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.errors import PomonaError
from runtime.server.ask import TokenInfo

if TYPE_CHECKING:
    from llguidance import LLTokenizer

    from runtime.cluster.text import ModelText
    from runtime.engine.frames import TokenLogprobs


class Vocabulary:
    """Takes about a second to make for a large vocabulary, so it is made in a thread and once."""

    def __init__(self, text: ModelText) -> None:
        """Raises :class:`PomonaError` for a tokenizer that cannot be read in this way."""
        import llguidance.hf  # brings transformers: seconds, and nothing for a server that is being started

        wrapped = text.tokenizer._tokenizer  # noqa: SLF001  mlx-lm's wrapper has no other name for it
        try:
            self.tokens: LLTokenizer = llguidance.hf.from_tokenizer(wrapped, eos_token=list(text.end_tokens))
        except ValueError as error:
            raise PomonaError(f"The vocabulary of this model cannot be read as bytes ({error}).") from error

    def info(self, token: int, logprobs: TokenLogprobs) -> TokenInfo:
        """A token and what it was chosen from, for people."""
        top = tuple((*self._shown(other), value) for other, value in logprobs.top)
        return TokenInfo(*self._shown(token), logprobs.chosen, top)

    def _shown(self, token: int) -> tuple[str, bytes]:
        if token >= self.tokens.vocab_size:  # heads may be wider than the vocabulary
            return "", b""
        utf8 = self.tokens.decode_bytes([token])
        return utf8.decode("utf-8", "replace"), utf8
