"""Where a tensor belongs, over the names of many architectures (those of mlx_lm/models, as mlx-lm saves them)."""

from __future__ import annotations

import pytest

from runtime.models.tensor_names import layer_tensors, part_of

LAYER_LISTS = [
    "model.layers.",  # llama, qwen, deepseek and most others
    "language_model.model.layers.",  # gemma3, mistral3, qwen3_5
    "model.language_model.layers.",  # gemma3n, muse_spark
    "transformer.h.",  # exaone, gpt_bigcode, phixtral, qwen
    "model.h.",  # gpt2, gpt_neox, gptj
    "transformer.blocks.",  # dbrx
    "model.transformer.blocks.",  # olmo
    "model.blocks.",  # talkie
    "transformer.layers.",  # openelm, lille
    "backbone.layers.",  # mamba, nemotron_h
    "model.layers.layers.",  # plamo
    "layers.",
    "thinker.stack.",  # of nobody yet
]


def split_layers(tensors: dict[str, int], layer_count: int) -> tuple[list[int], dict[str, int]] | None:
    """The bytes of each layer, and what is outside of them."""
    parts = layer_tensors(tensors, layer_count)
    return ([sum(layer.values()) for layer in parts[0]], parts[1]) if parts else None


@pytest.mark.parametrize("prefix", LAYER_LISTS)
def test_decoder_layers_are_found(prefix):
    tensors = {f"{prefix}{layer}.mlp.experts.{expert}.weight": layer + 1 for layer in range(12) for expert in range(3)}
    tensors |= {"model.embed_tokens.weight": 1000, "altup_projections.0.weight": 5000}
    parts = split_layers(tensors, 12)
    assert parts is not None
    layers, outside = parts
    assert layers == [3 * (layer + 1) for layer in range(12)]
    assert set(outside) == {"model.embed_tokens.weight", "altup_projections.0.weight"}


@pytest.mark.parametrize(
    "tower",
    [
        "vision_tower.layers.",
        "model.visual.blocks.",
        "vision_model.encoder.layers.",
        "audio_tower.layers.",
        "mtp.layers.",
    ],
)
def test_towers_are_no_decoder_however_large(tower):
    tensors = {f"{tower}{layer}.weight": 10**6 for layer in range(4)}
    tensors |= {f"language_model.model.layers.{layer}.weight": 1 for layer in range(4)}
    parts = split_layers(tensors, 4)
    assert parts is not None
    assert parts[0] == [1, 1, 1, 1]
    assert all(part_of(name) == "left out" for name in parts[1])


def test_layers_of_multi_token_prediction_are_in_neither_part():
    parts = split_layers({f"model.layers.{layer}.weight": 1 for layer in range(5)}, 4)
    assert parts == ([1, 1, 1, 1], {})


def test_a_layer_without_tensors_has_no_bytes():
    parts = split_layers({"model.layers.0.weight": 1, "model.layers.2.weight": 1}, 3)
    assert parts == ([1, 0, 1], {})


def test_a_complete_list_of_something_else_does_not_hide_a_missing_layer():
    tensors = {f"model.gate_projections.{layer}.weight": 1 for layer in range(3)}
    parts = split_layers(tensors | {"model.layers.0.weight": 7}, 3)
    assert parts is not None
    assert parts[0] == [7, 0, 0]


def test_layers_that_reuse_keys_and_values_go_on_counting():
    tensors = {f"model.layers.{layer}.weight": 2 for layer in range(3)}
    tensors |= {f"model.kv_reuse_layers.{layer}.weight": 3 for layer in range(2)}
    assert split_layers(tensors, 5) == ([2, 2, 2, 3, 3], {})


def test_a_layer_knows_its_tensors_by_their_names_inside_it():
    tensors = {"language_model.model.layers.0.mlp.experts.7.down_proj.weight": 5, "model.visual.blocks.0.weight": 9}
    parts = layer_tensors(tensors, 1)
    assert parts == ([{"mlp.experts.7.down_proj.weight": 5}], {"model.visual.blocks.0.weight": 9})


def test_without_numbered_lists_there_are_no_layers():
    assert split_layers({"model.embed_tokens.weight": 1, "lm_head.weight": 1}, 2) is None
    assert split_layers({}, 2) is None
    assert split_layers({"model.experts.0.weight": 1}, 2) is None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("model.embed_tokens.scales", "embedding"),
        ("language_model.model.embed_tokens.biases", "embedding"),
        ("model.language_model.embed_tokens_per_layer.weight", "beside embedding"),
        ("transformer.wte.weight", "embedding"),
        ("model.wpe.weight", "beside embedding"),
        ("transformer.embd.wte.weight", "embedding"),
        ("backbone.embeddings.weight", "embedding"),
        ("model.embedding.weight", "embedding"),
        ("model.word_embeddings.weight", "embedding"),
        ("model.tok_embeddings.weight", "embedding"),
        ("transformer.token_embeddings.weight", "embedding"),
        ("model.embed_in.weight", "embedding"),
        ("model.embed.weight", "embedding"),
        ("model.ngram_embeddings.word_embeddings.weight", "embedding"),
        ("lm_head.weight", "head"),
        ("language_model.lm_head.scales", "head"),
        ("lm_head.linear.bias", "head"),
        ("lm_head", "head"),
        ("output.weight", "head"),
        ("model.embed_out.weight", "head"),
        ("model.transformer.ff_out.weight", "head"),
        ("model.norm.weight", "other"),
        ("model.embedding_norm.weight", "other"),
        ("model.output_norm.weight", "other"),
        ("transformer.ln_f.bias", "other"),
        ("backbone.norm_f.weight", "other"),
        ("something.nobody.knows", "other"),
        ("vision_tower.patch_embed.weight", "left out"),
        ("model.visual.merger.mlp.0.weight", "left out"),
        ("multi_modal_projector.linear_1.weight", "left out"),
        ("mm_projector.proj.weight", "left out"),
        ("model.embed_vision.embedding.weight", "left out"),
        ("model.audio_tower.conv.weight", "left out"),
        ("model.mtp.embed_tokens.weight", "left out"),
        ("mtp.norm.weight", "left out"),
        ("model.mtp_layers.0.norm.weight", "left out"),
    ],
)
def test_tensors_outside_of_the_layers_have_their_place(name, part):
    assert part_of(name) == part
