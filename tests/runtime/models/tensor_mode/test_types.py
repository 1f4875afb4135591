"""What is written down about mlx-lm's models is true of the installed mlx-lm."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from pathlib import Path
from typing import Any

import mlx_lm
import pytest
from mlx_lm.models import gemma3, gemma4, pixtral
from mlx_lm.utils import MODEL_REMAPPING

from runtime.models.tensor_mode.parts import Numbers, UnsharedError
from runtime.models.tensor_mode.types import ALIASES, LEFT_OUT, SHARINGS, WRAPPERS, language_model
from tests.matrix.configs import CONFIGS

ARGUMENT_CLASSES = ("TextArgs", "TextModelArgs", "ModelArgs")
STEPS = {"moe_layer_freq": 1, "moe_layer_interval": 1, "decoder_sparse_step": 1}
"""Every layer is a mixture where a config does not say every how many."""


def test_every_model_of_mlx_lm_is_shared_or_left_out_with_a_reason():
    folder = Path(mlx_lm.__file__).parent / "models"
    models = {path.stem for path in folder.glob("*.py") if "\nclass Model(" in path.read_text()}
    inherited = {"solar_open"}  # takes another's class
    assert {*SHARINGS, *WRAPPERS, *LEFT_OUT} == models | inherited
    assert len({*SHARINGS, *WRAPPERS}) + len(LEFT_OUT) == len(models | inherited)


def test_the_aliases_are_those_of_mlx_lm():
    assert ALIASES == MODEL_REMAPPING


class Watched(Numbers):
    """Remembers for which keys a part asked."""

    def __init__(self, config, defaults) -> None:
        super().__init__(config, defaults)
        self.keys: set[str] = set()

    def get(self, key: str) -> Any:
        self.keys.add(key)
        return super().get(key)


@pytest.mark.parametrize("model_type", sorted(SHARINGS))
def test_what_a_config_leaves_out_is_what_mlx_lm_takes(model_type):
    module = importlib.import_module(f"mlx_lm.models.{'qwen3_5' if model_type == 'qwen3_5_moe' else model_type}")
    arguments = next(getattr(module, name) for name in ARGUMENT_CLASSES if hasattr(module, name))
    taken = {field.name: field.default for field in dataclasses.fields(arguments)}
    sharing = SHARINGS[model_type]
    for config in CONFIGS[model_type].values():
        numbers = Watched(language_model(config)[1], sharing.defaults)
        for part in sharing.parts:
            with contextlib.suppress(UnsharedError):
                list(part(numbers))
        for key in numbers.keys & set(taken):
            if taken[key] and taken[key] is not dataclasses.MISSING:
                assert sharing.defaults.get(key, STEPS.get(key)) == taken[key], key
    for key, default in sharing.defaults.items():
        assert taken[key] == default, key


@pytest.mark.parametrize("module", [gemma3, gemma4, pixtral], ids=lambda module: module.__name__)
def test_what_a_wrapper_leaves_out_is_what_mlx_lm_takes(module):
    model_type = module.__name__.rpartition(".")[2]
    taken = module.ModelArgs(model_type=model_type, text_config={}).text_config
    _inside, _text, defaults = language_model({"model_type": model_type, "text_config": {}})
    heads = {key: value for key, value in taken.items() if key.endswith("_heads")}
    assert defaults == heads
