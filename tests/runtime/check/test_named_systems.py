"""The systems that must work, each by name: over real worker processes, against mlx-lm alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest

from runtime.check.comparison import DECODE_TOKENS, PROMPT, check_plan
from tests.matrix.configs import CONFIGS
from tests.matrix.shared import KINDS as SHARED_KINDS
from tests.matrix.shared import shareable
from tests.matrix.staged import saved
from tests.runtime.check.plans import grouped, planned

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED = [
    # Even and uneven on two, three and four stages.
    ("qwen2", "four bits", (2, 2, 2, 1)),
    ("qwen3_moe", "some dense", (2, 4, 1)),
    ("qwen3_next", "full every fourth", (4, 3)),  # the second stage has linear layers alone
    ("qwen3_next", "full every fourth", (3, 1, 3)),  # and here one with full attention alone
    ("qwen3_5", "pictures tied", (2, 1, 3, 1)),
    ("qwen3_5_moe", "text", (3, 4)),
    ("deepseek_v32", "experts", (2, 4, 1)),
]
NAMED_IN_FULL = [
    ("qwen2", "untied", (4, 3)),
    ("qwen2", "tied", (3, 2, 2)),
    ("qwen3_moe", "untied", (4, 3)),
    ("qwen3_moe", "four bits", (1, 1, 3, 2)),
    ("qwen3_5", "text tied", (5, 2)),
    ("deepseek_v32", "experts", (3, 4)),
    ("qwen2", "tied", (1, 6)),
    ("qwen2", "untied", (1, 2, 4)),
    ("qwen2", "eight bits", (1, 1, 1, 4)),
    ("qwen3_next", "four bits", (1, 2, 1, 3)),
    *(
        (model_type, variant, split)
        for model_type, variants in {
            "qwen3_5": ("text untied", "pictures"),
            "qwen3_5_moe": ("text", "pictures"),
        }.items()
        for variant in variants
        for split in ((4, 3), (3, 4), (1, 6), (3, 2, 2), (3, 1, 3), (2, 2, 2, 1), (1, 2, 1, 3))
        if (model_type, variant, split) not in NAMED
    ),
]
"""Dense and with experts, with and without the vision wrapper, on every number of stages."""
KINDS = [
    ("llama", "sliding", (3, 4)),
    ("llama", "alias mistral", (2, 3, 2)),
    ("mistral3", "ministral3", (3, 4)),
    ("qwen3", "tied", (5, 2)),
    ("gemma3", "sliding", (2, 5)),
    ("gemma3_text", "sliding", (1, 6)),
    ("gemma4", "small", (3, 4)),
    ("gemma4_text", "shared keys", (2, 3, 2)),
    ("gemma3n", "shared keys", (5, 2)),
    ("afm7", "default", (3, 2, 2)),
    ("gpt_oss", "sliding", (2, 5)),
    ("phi3", "untied", (1, 1, 5)),
    ("granite", "tied", (4, 3)),
    ("granitemoehybrid", "experts", (2, 1, 4)),
    ("olmo2", "untied", (3, 4)),
    ("olmo3", "sliding", (1, 6)),
    ("olmo_hybrid", "untied", (3, 4)),
    ("glm4", "default", (4, 3)),
    ("glm4_moe", "default", (2, 4, 1)),
    ("minimax", "default", (3, 4)),
    ("kimi_k25", "default", (3, 4)),
    ("kimi_linear", "default", (3, 1, 3)),
    ("kimi_k3", "residual blocks", (3, 4)),
    ("nemotron_h", "dense", (1, 6)),
    ("lfm2", "default", (2, 1, 4)),
    ("mamba2", "tied", (3, 4)),
    ("jamba", "default", (4, 3)),
    ("rwkv7", "default", (3, 4)),
    ("talkie", "default", (3, 2, 2)),
    ("hunyuan", "shared keys", (3, 4)),
    ("deepseek_v41", "shared", (5, 2)),
    ("longcat_flash_ngram", "default", (3, 4)),
    ("llama4", "chunked", (3, 4)),
]
"""Every other system that the support matrix is for, one of each kind of layer, of cache, and of what crosses."""
SHARED = [
    (2, "qwen3_moe", "mixed bits"),
    (3, "qwen3_5", "pictures"),
    (2, "deepseek_v32", "experts"),
]
SHARED_IN_FULL = [
    (ranks, model_type, variant)
    for model_type, variants in {
        "qwen3_moe": ("untied", "four bits", "mixed bits"),
        "qwen3_next": ("full every fourth", "four bits"),
        "qwen3_5": ("text untied", "pictures"),
        "qwen3_5_moe": ("text", "pictures", "four bits"),
        "deepseek_v32": ("experts",),
        "llama": ("four bits", "eight bits", "mixed bits"),
    }.items()
    for variant in variants
    for ranks in (2, 3, 4)
    if (ranks, model_type, variant) not in SHARED
]
GROUPED = ("qwen3-moe, mixed bits",)


def cases(parts: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [
        pytest.param(*part, id=", ".join("-".join(map(str, it)) if isinstance(it, tuple) else str(it) for it in part))
        for part in parts
    ]


@pytest.mark.parametrize(("model_type", "variant", "split"), cases(NAMED))
async def test_a_named_system_over_worker_processes_is_the_whole_model(model_type, variant, split, tmp_path):
    folder = saved(CONFIGS[model_type][variant], tmp_path / model_type)
    result = await check_plan(folder, planned(folder, split))
    assert result.identical, result
    assert result.max_abs_difference == 0
    assert (result.split, result.prefill_tokens, result.decode_tokens) == (split, len(PROMPT), DECODE_TOKENS)


@pytest.mark.matrix
@pytest.mark.parametrize(("model_type", "variant", "split"), cases([*NAMED_IN_FULL, *KINDS]))
async def test_every_system_over_worker_processes_is_the_whole_model(model_type, variant, split, tmp_path):
    folder = saved(CONFIGS[model_type][variant], tmp_path / model_type)
    result = await check_plan(folder, planned(folder, split))
    assert result.identical, result
    assert result.max_abs_difference == 0


async def assert_shared(ranks: int, model_type: str, variant: str, folder: Any) -> None:
    saved(shareable(CONFIGS[model_type][variant], ranks), folder)
    result = await check_plan(folder, planned(folder, None, ranks, "tensor"))
    assert result.identical, result
    assert result.split == (7,) * ranks


@pytest.mark.parametrize(("ranks", "model_type", "variant"), cases(SHARED))
async def test_a_named_system_shared_by_worker_processes_is_the_whole_model(ranks, model_type, variant, tmp_path):
    await assert_shared(ranks, model_type, variant, tmp_path / model_type)


@pytest.mark.matrix
@pytest.mark.parametrize(("ranks", "model_type", "variant"), cases(SHARED_IN_FULL))
async def test_every_named_system_is_shared_by_two_three_and_four(ranks, model_type, variant, tmp_path):
    await assert_shared(ranks, model_type, variant, tmp_path / model_type)


async def assert_grouped(kind: str, folder: Any) -> None:
    model_type, variant = SHARED_KINDS[kind]
    saved(shareable(CONFIGS[model_type][variant], 2), folder)
    result = await check_plan(folder, grouped(folder, (4, 3), 2))
    assert result.identical, result
    assert result.split == (4, 4, 3, 3)


@pytest.mark.parametrize("kind", GROUPED)
async def test_two_stages_of_two_ranks_each_are_the_whole_model(kind, tmp_path):
    await assert_grouped(kind, tmp_path / "model")


@pytest.mark.matrix
@pytest.mark.parametrize("kind", [kind for kind in SHARED_KINDS if kind not in GROUPED])
async def test_two_stages_of_two_ranks_of_each_kind_are_the_whole_model(kind, tmp_path):
    await assert_grouped(kind, tmp_path / "model")


async def test_a_single_file_without_an_index_and_with_mixed_dtypes_is_the_whole_model(tmp_path):
    folder = saved(CONFIGS["llama"]["untied"], tmp_path / "model")
    (folder / "model.safetensors.index.json").unlink()
    loaded: Any = mx.load(str(folder / "model.safetensors"))
    weights = {name: array if "norm" in name else array.astype(mx.bfloat16) for name, array in loaded.items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    result = await check_plan(folder, planned(folder, (2, 4, 1)))
    assert result.identical, result
    assert result.max_abs_difference == 0
