"""What a layout says, against what built models and their caches really hold."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear
from mlx_lm.utils import load_model

from runtime.engine.cache_probe import probe
from runtime.models.cache_layout import LayerCache, read_caches
from runtime.models.experts import experts_per_token
from runtime.models.layout import read_layout
from tests.matrix import support
from tests.matrix.configs import CONFIGS, all_variants
from tests.matrix.staged import saved

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.layout import ModelLayout
    from tests.matrix.variant import Config

MEASURED = [each for each in all_variants() if each[0] not in support.NEEDS_METAL and not support.refusal(each[2])]
ONE_OF_EACH_KIND = ("llama", "mixtral", "deepseek_v3", "gemma3_text", "qwen3_next", "mamba2")
LISTED_EXPERTS = ("dbrx",)
"""Experts as a list of modules, of which only those that a token visits run."""
TOKENS = 256
"""Caches grow by so many: here nothing is only reserved."""


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_weights_and_caches_of_each_kind(name, tmp_path):
    assert_right(name, next(iter(CONFIGS[name].values())), tmp_path / "model")


@pytest.mark.matrix
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "variant", "config"), MEASURED, ids=lambda part: part if isinstance(part, str) else ""
)
def test_weights_and_caches_of_every_variant(name, variant, config, tmp_path):
    assert_right(name, config, tmp_path / "model")


def assert_right(name: str, config: Config, folder: Path) -> None:
    layout = read_layout(saved(config, folder))
    model, _config = load_model(folder)
    assert layout.layer_bytes == tuple(map(nbytes, model.layers))
    assert_active(name, config, layout, model)
    caches = probe(copy.deepcopy(config), mx.float32).layers
    assert len(caches) == len(model.layers)
    said, held = sum(cache.bytes_at(TOKENS) for cache in caches), cache_bytes(model)
    assert held == said or (name == "llama4" and abs(held - said) < 0.03 * held)  # its chunks overlap for a while


def assert_active(name: str, config: Config, layout: ModelLayout, model: Any) -> None:
    visited = experts_per_token(config)
    real = []
    for layer in model.layers:
        active = nbytes(layer)
        for _path, module in layer.named_modules():
            if isinstance(module, SwitchLinear | QuantizedSwitchLinear):
                routed = nbytes(module)
                active -= routed - routed * visited // module.weight.shape[0]
        real.append(active)
    if name in LISTED_EXPERTS:
        assert all(said < whole for said, whole in zip(layout.layer_active_bytes, layout.layer_bytes, strict=True))
    else:
        assert layout.layer_active_bytes == pytest.approx(real, abs=64)


def nbytes(module: Any) -> int:
    parameters: Any = tree_flatten(module.parameters())
    return sum(array.nbytes for _name, array in parameters)


def cache_bytes(model: Any) -> int:
    """After a prompt in chunks and some tokens one by one, 256 in all."""
    cache = make_prompt_cache(model)
    for width in [31] * 8 + [1] * 8:
        mx.eval(model(mx.full((1, width), width, mx.int32), cache=cache))
    return sum(each.nbytes for each in cache if not each.empty())


def test_the_kinds_of_caches():
    kinds = {
        name: {cache.kind for cache in caches_of(name)} for name in ("llama", "mamba2", "gemma3_text", "deepseek_v3")
    }
    assert kinds == {
        "llama": {"full"},
        "mamba2": {"constant"},
        "gemma3_text": {"sliding", "full"},
        "deepseek_v3": {"latent"},
    }


def caches_of(name: str) -> tuple[LayerCache, ...]:
    return probe(copy.deepcopy(next(iter(CONFIGS[name].values()))), mx.float32).layers


def test_what_later_stages_keep_of_earlier_caches():
    copies = probe(copy.deepcopy(next(iter(CONFIGS["deepseek_v41"].values()))), mx.float32).copies
    assert [(each.source, each.users, each.cache.bytes_per_token) for each in copies] == [
        (1, (2, 3), 2 * 32),
        (1, (2, 3), 2 * 32),
        (4, (5, 6), 32),
        (4, (5, 6), 32),
    ]


def test_an_answer_is_kept_and_a_wrong_configuration_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config = next(iter(CONFIGS["llama"].values()))
    first = read_caches(config, "F16")
    assert first == read_caches(config, "F16")
    assert len(list((tmp_path / "pomona" / "cache-layouts").iterdir())) == 1
    layer = first.layers[0]
    assert layer.bytes_per_token == 2 * 2 * config["num_key_value_heads"] * config["head_dim"]
    assert layer.bytes_at(10) == 10 * layer.bytes_per_token
