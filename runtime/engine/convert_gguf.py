"""Turns a GGUF file of a Llama model into a model folder that mlx-lm loads, without any network.

    python -m runtime.engine.convert_gguf MODEL.gguf FOLDER [--dtype float32|float16]

Three things differ between the formats; everything else is renaming:

* Quantized weights stay as they are. GGUF's Q4_1 stores a block of 32 weights as ``w = d * q + m``, which is MLX's
  affine mode with groups of 32: ``d`` is the scale and ``m`` the bias. Q8_0 is ``w = d * q`` with signed ``q``, so
  8 bits with bias ``-128 * d``. ``mx.load`` repacks both. (Formats: docs/gguf.md and ggml-common.h of ggml.)
* The rows of q and k are in another order, because llama.cpp rotates neighbouring pairs where MLX and Hugging Face
  rotate the two halves of a head (``permute`` in llama.cpp's convert_hf_to_gguf.py).
* The tokenizer is a list of tokens and merges in the metadata; it is built again as a Hugging Face one.

Scales, biases and norms get one dtype, which is then that of the activations. float16 is what the file holds and what
a GPU wants; MLX's quantized matmul on a CPU is about ninety times faster with float32.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mlx.core as mx
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DTYPES = {"float16": mx.float16, "float32": mx.float32}
GROUP_SIZE = 32
CONTROL_TOKEN = 3
"""``LLAMA_TOKEN_TYPE_CONTROL`` of llama.cpp: tokens that never come from plain text."""

_WEIGHTS_FILE = "model.safetensors"
_MODULES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER_MODULES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class Metadata:
    """The key-value part of a GGUF file, with a sentence for what is missing or not as expected."""

    def __init__(self, values: Mapping[str, Any], source: Path) -> None:
        self._values = values
        self._source = source

    def _value(self, key: str) -> Any:
        try:
            return self._values[key]
        except KeyError as error:
            raise PomonaError(f"{self._source} lacks the entry {key}, so it cannot be converted.") from error

    def text(self, key: str) -> str:
        """A string value."""
        return str(self._value(key))

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        return list(self._value(key))

    def integer(self, key: str) -> int:
        """A number without fraction."""
        return int(self._value(key).item())

    def number(self, key: str) -> float:
        """A number."""
        return float(self._value(key).item())

    def integers(self, key: str) -> list[int]:
        """An array of numbers without fraction."""
        return [int(value) for value in self._value(key).tolist()]

    def expect(self, key: str, wanted: str) -> None:
        """Raises PomonaError unless the value is the one that this module knows how to convert."""
        found = self.text(key)
        if found != wanted:
            raise PomonaError(f"{self._source} has {key} “{found}”, and only “{wanted}” can be converted.")


def convert(gguf: Path, folder: Path, dtype: mx.Dtype) -> None:
    """Writes the model in ``gguf`` to ``folder``, which is made if it is not there.

    Raises:
        PomonaError: the file is no GGUF or damaged, or holds a model or tokenizer of another kind.
        OSError: the folder cannot be written.
    """
    tensors, metadata = _read(gguf)
    metadata.expect("general.architecture", "llama")
    metadata.expect("tokenizer.ggml.model", "gpt2")
    metadata.expect("tokenizer.ggml.pre", "smollm")
    weights = _convert_weights(tensors, metadata, gguf, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / _WEIGHTS_FILE), weights, metadata={"format": "mlx"})
    config = _config(weights, metadata, dtype)
    _write_json(folder / "config.json", config)
    _write_json(folder / f"{_WEIGHTS_FILE}.index.json", _index(weights))
    _write_json(folder / "generation_config.json", {key: config[key] for key in ("bos_token_id", "eos_token_id")})
    _tokenizer(metadata).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(metadata))


def _read(gguf: Path) -> tuple[dict[str, mx.array], Metadata]:
    if not gguf.is_file():
        raise PomonaError(f"There is no file {gguf}.")
    try:
        loaded = mx.load(str(gguf), format="gguf", return_metadata=True)
    except RuntimeError as error:
        raise PomonaError(f"{gguf} cannot be read as a GGUF file; it is something else, damaged or cut off.") from error
    tensors, values = cast("tuple[dict[str, mx.array], dict[str, Any]]", loaded)
    return tensors, Metadata(values, gguf)


def _convert_weights(
    tensors: Mapping[str, mx.array], metadata: Metadata, source: Path, dtype: mx.Dtype
) -> dict[str, mx.array]:
    """Renames every tensor, puts the rows of q and k in order, and casts what is not packed to ``dtype``."""
    heads_of = {
        "attn_q": metadata.integer("llama.attention.head_count"),
        "attn_k": metadata.integer("llama.attention.head_count_kv"),
    }
    weights = {}
    for name, stored in tensors.items():
        tensor = stored
        match name.split("."):
            case ["blk", layer, module, part] if module in _LAYER_MODULES:
                new_name = f"model.layers.{layer}.{_LAYER_MODULES[module]}.{part}"
                if module in heads_of:
                    tensor = halves_from_pairs(tensor, heads_of[module])
            case [module, part] if module in _MODULES:
                new_name = f"{_MODULES[module]}.{part}"
            case _:
                raise PomonaError(f"{source} has the tensor {name}, which a plain Llama model does not have.")
        weights[new_name] = tensor.astype(dtype) if mx.issubdtype(tensor.dtype, mx.floating) else tensor
    return weights


def halves_from_pairs(rows: mx.array, heads: int) -> mx.array:
    """Reorders the output rows of a q or k projection from llama.cpp's rotary layout to Hugging Face's.

    Within a head of ``d`` rows, llama.cpp keeps the two that rotate together side by side, (0, d/2, 1, d/2 + 1, …);
    here they are half a head apart. Rows are moved whole, so packed weights, scales and biases are treated alike.

    Args:
        rows: ``(heads * d, anything)``.
        heads: how many heads the rows belong to.
    """
    pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
    return mx.contiguous(pairs.swapaxes(1, 2).reshape(rows.shape))


def _config(weights: Mapping[str, mx.array], metadata: Metadata, dtype: mx.Dtype) -> dict[str, Any]:
    """The config.json of a Llama model, as Hugging Face and mlx-lm spell it."""
    hidden_size = metadata.integer("llama.embedding_length")
    attention_heads = metadata.integer("llama.attention.head_count")
    quantization = _quantization(weights)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden_size,
        "intermediate_size": metadata.integer("llama.feed_forward_length"),
        "num_hidden_layers": metadata.integer("llama.block_count"),
        "num_attention_heads": attention_heads,
        "num_key_value_heads": metadata.integer("llama.attention.head_count_kv"),
        "head_dim": hidden_size // attention_heads,
        "max_position_embeddings": metadata.integer("llama.context_length"),
        "rms_norm_eps": metadata.number("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": metadata.number("llama.rope.freq_base"),
        "vocab_size": len(metadata.texts("tokenizer.ggml.tokens")),
        "tie_word_embeddings": "lm_head.weight" not in weights,
        "bos_token_id": metadata.integer("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.integer("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.integer("tokenizer.ggml.padding_token_id"),
        "torch_dtype": str(dtype).removeprefix("mlx.core."),
        "quantization": quantization,
        "quantization_config": quantization,
    }


def _quantization(weights: Mapping[str, mx.array]) -> dict[str, Any]:
    """mlx-lm's quantization entry: 4 bits, and by name the modules that have another width."""
    quantization: dict[str, Any] = {"group_size": GROUP_SIZE, "bits": 4, "mode": "affine"}
    for name, scales in weights.items():
        module, _, part = name.rpartition(".")
        if part != "scales":
            continue
        # A row of n weights is n * bits / 32 words and n / GROUP_SIZE scales.
        bits = weights[f"{module}.weight"].shape[-1] * 32 // (scales.shape[-1] * GROUP_SIZE)
        if bits != quantization["bits"]:
            quantization[module] = {"group_size": GROUP_SIZE, "bits": bits}
    return quantization


def _index(weights: Mapping[str, mx.array]) -> dict[str, Any]:
    total_bytes = sum(tensor.nbytes for tensor in weights.values())
    return {"metadata": {"total_size": total_bytes}, "weight_map": dict.fromkeys(sorted(weights), _WEIGHTS_FILE)}


def _tokenizer(metadata: Metadata) -> Tokenizer:
    """The byte-level BPE of GPT-2, with llama.cpp's “smollm” rule: every digit is a token of its own."""
    tokens = metadata.texts("tokenizer.ggml.tokens")
    merges = [_pair(merge) for merge in metadata.texts("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_control_tokens(tokens, metadata.integers("tokenizer.ggml.token_type")))
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _control_tokens(tokens: Sequence[str], types: Sequence[int]) -> list[AddedToken]:
    return [
        AddedToken(token, special=True, normalized=False)
        for token, kind in zip(tokens, types, strict=True)
        if kind == CONTROL_TOKEN
    ]


def _tokenizer_config(metadata: Metadata) -> dict[str, Any]:
    tokens = metadata.texts("tokenizer.ggml.tokens")

    def named(role: str) -> str:
        return tokens[metadata.integer(f"tokenizer.ggml.{role}_token_id")]

    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": named("bos"),
        "eos_token": named("eos"),
        "pad_token": named("padding"),
        "unk_token": named("unknown"),
        "model_max_length": metadata.integer("llama.context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": metadata.text("tokenizer.chat_template"),
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit status; what went wrong is one sentence on standard error."""
    parser = argparse.ArgumentParser(prog="python -m runtime.engine.convert_gguf", description="GGUF to MLX.")
    parser.add_argument("gguf", type=Path, help="a Llama model with the SmolLM tokenizer")
    parser.add_argument("folder", type=Path, help="where the MLX model goes")
    device_dtype = "float16" if mx.metal.is_available() else "float32"
    parser.add_argument("--dtype", choices=DTYPES, default=device_dtype, help="default here: %(default)s")
    options = parser.parse_args(arguments)
    try:
        convert(options.gguf, options.folder, DTYPES[options.dtype])
    except PomonaError as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, RuntimeError) as error:  # MLX raises RuntimeError where it cannot write
        print(f"The model could not be written to {options.folder}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
