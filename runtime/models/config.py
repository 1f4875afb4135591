"""What ``config.json`` says of a language model, under the names that different families use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_NAME = "config.json"
UNKNOWN_CONTEXT_TOKENS = 4096
"""For a model that does not say what it was made for, such as Mamba."""

_MAX_CONFIG_BYTES = 16 * 2**20
_MAX_COUNT = 100_000

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "num_attention_groups")
_CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "context_length",
    "model_max_length",
)


class ModelConfig(msgspec.Struct, frozen=True):
    """The numbers that a layout needs."""

    model_type: str
    layer_count: int
    attention_heads: int
    """0 when the model does not say, or has none."""
    key_value_heads: int
    context_tokens: int
    tied: bool | None
    """Whether the output head is the embedding; None when the model does not say."""


def read_config(folder: Path) -> ModelConfig:
    """The configuration of the model in ``folder``. Raises :class:`PomonaError` if there is none that can be read."""
    return model_config(read_settings(folder), str(folder / CONFIG_NAME))


def read_settings(folder: Path) -> dict[str, Any]:
    """All that ``config.json`` in ``folder`` says. Raises :class:`PomonaError` if there is none that can be read."""
    path = folder / CONFIG_NAME
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PomonaError(f"{folder} is no model folder: it has no {CONFIG_NAME}. Choose another folder.") from error
    except OSError as error:
        raise PomonaError(f"{path} cannot be read ({error.strerror}).") from error
    if len(text) > _MAX_CONFIG_BYTES:
        raise PomonaError(f"{path} is too large to be a model's configuration: fetch the model again.")
    return parse_settings(text, str(path))


def parse_config(text: bytes, source: str) -> ModelConfig:
    """What a ``config.json`` says under the names that we know. ``source`` names it in errors."""
    return model_config(parse_settings(text, source), source)


def parse_settings(text: bytes, source: str) -> dict[str, Any]:
    """All that a ``config.json`` says. ``source`` names it in errors."""
    try:
        config = json.loads(text)  # not msgspec: some models have NaN or Infinity in theirs
    except (ValueError, RecursionError) as error:
        raise PomonaError(f"{source} is damaged: fetch the model again.") from error
    if not isinstance(config, dict):
        raise PomonaError(f"{source} is no model's configuration: fetch the model again.")
    return config


def model_config(config: dict[str, Any], source: str) -> ModelConfig:
    """The numbers that a layout needs. ``source`` names the configuration in errors."""
    model_type = config.get("model_type")
    layers = _count(config, _LAYERS)
    if not isinstance(model_type, str) or layers is None:
        raise PomonaError(
            f"{source} describes no language model: it does not say "
            f"{'how many layers there are' if isinstance(model_type, str) else 'of which type the model is'}."
        )
    heads = _count(config, _HEADS) or 0
    tied = next((value for value in _values(config, ("tie_word_embeddings",)) if isinstance(value, bool)), None)
    return ModelConfig(
        model_type=model_type,
        layer_count=layers,
        attention_heads=heads,
        key_value_heads=_count(config, _KEY_VALUE_HEADS) or heads,
        context_tokens=_count(config, _CONTEXT, 2**40) or UNKNOWN_CONTEXT_TOKENS,
        tied=tied,
    )


def _values(config: dict[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Candidates for one fact: the text model's part of a multimodal configuration first, then the whole."""
    for part in (config.get("text_config"), config):
        if isinstance(part, dict):
            for name in names:
                yield part.get(name)


def _count(config: dict[str, Any], names: tuple[str, ...], maximum: int = _MAX_COUNT) -> int | None:
    for value in _values(config, names):
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= maximum:
            return value
    return None
