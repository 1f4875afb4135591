"""How long a model's layout takes from its headers alone: ``python -m tests.bench.layout``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from runtime.models.layout import read_layout
from tests.bench.planning import report

DENSE_MILLISECONDS, EXPERTS_MILLISECONDS = 50, 1000


def write_headers(folder: Path, config: dict[str, object], shapes: dict[str, tuple[int, ...]], files: int) -> Path:
    """A model's files with all of their headers; the weights are a hole, because nobody reads them."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    weight_map: dict[str, str] = {}
    names = list(shapes)
    for number in range(files):
        name = f"model-{number + 1:05}-of-{files:05}.safetensors"
        header, end = {}, 0
        for tensor in names[number * len(names) // files : (number + 1) * len(names) // files]:
            size = 2
            for length in shapes[tensor]:
                size *= length
            header[tensor] = {"dtype": "BF16", "shape": shapes[tensor], "data_offsets": [end, end + size]}
            weight_map[tensor] = name
            end += size
        text = json.dumps(header).encode()
        with (folder / name).open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + end)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def dense(folder: Path) -> Path:
    """About 700 tensors: 64 layers of eleven."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (32000, 512), "model.norm.weight": (512,)}
    for layer in range(64):
        for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"):
            shapes[f"model.layers.{layer}.self_attn.{part}.weight"] = (512, 512)
        for part in ("gate_proj", "up_proj", "down_proj"):
            shapes[f"model.layers.{layer}.mlp.{part}.weight"] = (512, 2048)
        for part in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"model.layers.{layer}.{part}.weight"] = (512,)
    return write_headers(folder, {"model_type": "qwen3", "num_hidden_layers": 64, "num_attention_heads": 8}, shapes, 8)


def experts(folder: Path) -> Path:
    """61 layers of 256 experts, each a tensor of its own with a scale: 94 000 tensors in 160 files."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (32000, 64), "lm_head.weight": (32000, 64)}
    for layer in range(61):
        for part in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"):
            shapes[f"model.layers.{layer}.self_attn.{part}.weight"] = (64, 64)
        for expert in range(256):
            for part in ("gate_proj", "up_proj", "down_proj"):
                shapes[f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight"] = (64, 64)
                shapes[f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight_scale_inv"] = (1, 1)
    config = {"model_type": "deepseek_v3", "num_hidden_layers": 61, "num_experts_per_tok": 8, "n_routed_experts": 256}
    return write_headers(folder, config, shapes, 160)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        small, large = dense(Path(scratch, "dense")), experts(Path(scratch, "experts"))
        report("layout of 700 tensors", DENSE_MILLISECONDS, lambda: read_layout(small))
        report("layout of 61 layers x 256 experts", EXPERTS_MILLISECONDS, lambda: read_layout(large))


if __name__ == "__main__":
    main()
