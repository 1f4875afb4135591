"""config.json over the names that families use, and what is none."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import PomonaError
from runtime.models.config import UNKNOWN_CONTEXT_TOKENS, ModelConfig, parse_config, read_config


def parse(config: object) -> ModelConfig:
    return parse_config(json.dumps(config).encode(), "config.json")


def test_a_plain_model():
    config = {
        "model_type": "llama",
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    }
    assert parse(config) == ModelConfig("llama", 30, 9, 3, 8192, True)


def test_the_text_model_of_a_multimodal_one():
    text = {"model_type": "qwen3_5_text", "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4}
    vision = {"num_hidden_layers": 99, "num_attention_heads": 99}
    config = parse({"model_type": "qwen3_5", "text_config": text, "vision_config": vision, "num_attention_heads": 1})
    assert (config.model_type, config.layer_count) == ("qwen3_5", 32)
    assert (config.attention_heads, config.key_value_heads) == (16, 4)


@pytest.mark.parametrize(
    ("model_type", "names", "expected"),
    [
        ("gpt2", {"n_layer": 12, "n_head": 12, "n_positions": 1024}, (12, 12, 12, 1024)),
        ("dbrx", {"n_layers": 40, "n_heads": 48, "max_seq_len": 32768}, (40, 48, 48, 32768)),
        ("exaone", {"num_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}, (32, 32, 8, 4096)),
        ("step3p5", {"num_hidden_layers": 45, "num_attention_heads": 64, "num_attention_groups": 8}, (45, 64, 8, 4096)),
        ("mamba", {"num_hidden_layers": 48}, (48, 0, 0, UNKNOWN_CONTEXT_TOKENS)),
        ("openelm", {"num_hidden_layers": 16, "num_kv_heads": [3, 4]}, (16, 0, 0, 4096)),
    ],
)
def test_other_families_have_other_names(model_type, names, expected):
    config = parse({"model_type": model_type, **names})
    assert (
        config.layer_count,
        config.attention_heads,
        config.key_value_heads,
        config.context_tokens,
    ) == expected


def test_numbers_that_json_does_not_know_are_no_reason_to_refuse():
    text = b'{"model_type": "llama", "num_hidden_layers": 2, "limit": Infinity, "other": NaN}'
    assert parse_config(text, "config.json").layer_count == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "damaged"),
        (b'{"model_type": "llama", "num_hid', "damaged"),
        (b"\xff\xff", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"[]", "no model's configuration"),
        (b"{}", "of which type"),
        (b'{"model_type": 3, "num_hidden_layers": 2}', "of which type"),
        (b'{"model_type": "whisper"}', "how many layers"),
        (b'{"model_type": "llama", "num_hidden_layers": 0}', "how many layers"),
        (b'{"model_type": "llama", "num_hidden_layers": -1}', "how many layers"),
        (b'{"model_type": "llama", "num_hidden_layers": true}', "how many layers"),
        (b'{"model_type": "llama", "num_hidden_layers": 1e9}', "how many layers"),
        (b'{"model_type": "llama", "num_hidden_layers": 1000000000}', "how many layers"),
    ],
)
def test_what_is_no_language_model_is_one_sentence(text, complaint):
    with pytest.raises(PomonaError, match=complaint):
        parse_config(text, "config.json")


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["llama", "", "2"])
NAMES = st.sampled_from(["model_type", "num_hidden_layers", "num_attention_heads", "n_ctx", "tie_word_embeddings"])


@given(st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, VALUES) | VALUES)
def test_any_json_is_read_or_refused(config, text_config):
    with contextlib.suppress(PomonaError):
        assert parse(config | {"text_config": text_config}).layer_count > 0


def test_a_folder_without_a_configuration_is_no_model(tmp_path):
    with pytest.raises(PomonaError, match="is no model folder"):
        read_config(tmp_path)
    with pytest.raises(PomonaError, match="is no model folder"):
        read_config(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(PomonaError, match="is no model folder"):
        read_config(tmp_path / "file")


def test_a_configuration_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(PomonaError, match="cannot be read"):
        read_config(tmp_path)
