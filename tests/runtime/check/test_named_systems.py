"""The systems that must work, each by name: over real worker processes, against mlx-lm alone."""

from __future__ import annotations

import pytest

from runtime.check.comparison import DECODE_TOKENS, PROMPT, check_plan
from tests.matrix.configs import CONFIGS
from tests.matrix.staged import saved
from tests.runtime.check.plans import planned

NAMED = [
    ("qwen2", "untied", (3, 4)),
    ("qwen2", "tied", (1, 2, 4)),
    ("qwen2", "four bits", (2, 2, 2, 1)),
    ("qwen3_moe", "untied", (4, 3)),
    ("qwen3_moe", "four bits", (1, 1, 5)),
    ("qwen3_next", "full every fourth", (4, 3)),  # the second stage has linear layers alone
    ("qwen3_next", "full every fourth", (3, 1, 3)),  # and here one with full attention alone
    ("qwen3_5", "text tied", (5, 2)),
    ("qwen3_5", "pictures", (2, 1, 3, 1)),
    ("qwen3_5_moe", "text", (3, 4)),
    ("qwen3_5_moe", "pictures", (3, 1, 3)),
    ("deepseek_v32", "experts", (3, 4)),
    ("deepseek_v32", "experts", (2, 4, 1)),
]
KINDS = [
    ("llama", "sliding", (3, 4)),
    ("gemma3_text", "sliding", (1, 6)),
    ("gemma4_text", "shared keys", (2, 3, 2)),
    ("gemma3n", "shared keys", (5, 2)),
    ("afm7", "default", (3, 2, 2)),
    ("gpt_oss", "sliding", (2, 5)),
    ("mamba2", "tied", (3, 4)),
    ("nemotron_h", "dense", (1, 6)),
    ("rwkv7", "default", (3, 4)),
    ("talkie", "default", (3, 2, 2)),
    ("hunyuan", "shared keys", (3, 4)),
    ("kimi_k3", "residual blocks", (3, 4)),
    ("deepseek_v41", "shared", (5, 2)),
    ("longcat_flash_ngram", "default", (3, 4)),
    ("llama4", "chunked", (3, 4)),
]
"""One of each kind of layer, of cache, and of what crosses a boundary besides the hidden state."""


def case(model_type: str, variant: str, split: tuple[int, ...]) -> object:
    return pytest.param(model_type, variant, split, id=f"{model_type}, {variant}, {'-'.join(map(str, split))}")


@pytest.mark.parametrize(("model_type", "variant", "split"), [case(*named) for named in NAMED])
async def test_a_named_system_over_worker_processes_is_the_whole_model(model_type, variant, split, tmp_path):
    folder = saved(CONFIGS[model_type][variant], tmp_path / model_type)
    result = await check_plan(folder, planned(folder, split))
    assert result.identical, result
    assert result.max_abs_difference == 0
    assert (result.split, result.prefill_tokens, result.decode_tokens) == (split, len(PROMPT), DECODE_TOKENS)


@pytest.mark.matrix
@pytest.mark.parametrize(("model_type", "variant", "split"), [case(*kind) for kind in KINDS])
async def test_each_kind_of_layer_over_worker_processes_is_the_whole_model(model_type, variant, split, tmp_path):
    folder = saved(CONFIGS[model_type][variant], tmp_path / model_type)
    result = await check_plan(folder, planned(folder, split))
    assert result.identical, result
