"""What is measured on: the demo's weights as a model that mlx-lm can pipeline, and a random one with a tokenizer."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx_lm.utils import _get_classes, save_model

if TYPE_CHECKING:
    from pathlib import Path

RANDOM_CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 256,
    "num_hidden_layers": 12,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


def demo_as_qwen2(demo: Path, folder: Path) -> Path:
    """The same numbers under another name: Qwen2 is Llama with biases on q, k and v, here zero.

    mlx-lm has a pipeline for Qwen2 and none for Llama.
    """
    config = json.loads((demo / "config.json").read_text())
    weights: dict[str, mx.array] = dict(mx.load(str(demo / "model.safetensors")))  # type: ignore[arg-type]  # a dict here
    for layer in range(config["num_hidden_layers"]):
        for part in ("q_proj", "k_proj", "v_proj"):
            name = f"model.layers.{layer}.self_attn.{part}"
            weights[f"{name}.bias"] = mx.zeros((weights[f"{name}.weight"].shape[0],))
    config |= {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    return _write(folder, config, weights, demo)


def random_model(demo: Path, folder: Path) -> Path:
    """Twelve layers of noise in float32, with the demo's tokenizer so that mlx-lm's server takes it."""
    mx.random.seed(0)
    model_class, arguments_class = _get_classes(RANDOM_CONFIG)
    model = model_class(arguments_class.from_dict(RANDOM_CONFIG))
    folder.mkdir()
    save_model(folder, model)
    (folder / "config.json").write_text(json.dumps({**RANDOM_CONFIG, "eos_token_id": RANDOM_CONFIG["vocab_size"] - 1}))
    _copy_tokenizer(demo, folder)
    return folder


def _write(folder: Path, config: dict[str, Any], weights: dict[str, mx.array], demo: Path) -> Path:
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config))
    _copy_tokenizer(demo, folder)
    return folder


def _copy_tokenizer(demo: Path, folder: Path) -> None:
    for file in demo.iterdir():
        if file.name.startswith(("tokenizer", "chat_template", "special")):
            shutil.copy(file, folder)
