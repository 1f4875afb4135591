"""Model types whose layers the ranks of a tensor group can share.

Those are the modules of mlx-lm 0.32.2 whose ``Model`` has a ``shard`` method (``mlx_lm/models/*.py``), and the aliases
that lead to them (``MODEL_REMAPPING`` in ``mlx_lm/utils.py``). Kept as data, because importing mlx-lm to find out
costs seconds and has no place in the window; a test compares both with the installed mlx-lm.
"""

from __future__ import annotations

SHARDED_TYPES = frozenset(
    {
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v41",
        "exaone_moe",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
        "gpt_oss",
        "iquestloopcoder",
        "kimi_k25",
        "kimi_k3",
        "llama",
        "longcat_flash",
        "longcat_flash_ngram",
        "minimax",
        "minimax_m3_vl",
        "ministral3",
        "mistral4",
        "muse_spark",
        "prism_hadamard_qwen35",
        "qwen2",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_moe",
        "solar_open",
        "step3p5",
    }
)

SHARDED_ALIASES = frozenset(
    {
        "deepseek_v41_text",
        "iquestcoder",
        "joyai_llm_flash",
        "kimi_k2",
        "minimax_m2",
        "mistral",
        "xverse",
    }
)

TENSOR_PARALLEL_TYPES = SHARDED_TYPES | SHARDED_ALIASES
