"""The layout of model folders, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.errors import PomonaError
from runtime.models.folder_names import model_name
from runtime.models.layout import read_layout
from tests.runtime.models.files import decoder, write_model, write_weights

LLAMA = {
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}
ENDS = {"model.embed_tokens.weight": (50, 8), "model.norm.weight": (8,), "lm_head.weight": (50, 8)}
MODEL = ENDS | decoder("model.layers.", 4)


def test_layers_embedding_and_head_of_a_single_file(tmp_path):
    layout = read_layout(write_model(tmp_path / "Tiny-Llama", MODEL, **LLAMA))
    assert layout.name == "Tiny-Llama"
    assert layout.model_type == "llama"
    assert layout.layer_bytes == (20, 40, 60, 80)
    assert layout.embedding_bytes == 800
    assert layout.head_bytes == 816
    assert not layout.tied_embedding
    assert layout.weight_bytes == sum((800, 816, 20, 40, 60, 80))
    assert (layout.attention_heads, layout.key_value_heads, layout.context_tokens) == (8, 2, 2048)


def test_several_files_are_the_same_model(tmp_path):
    one = read_layout(write_model(tmp_path / "one" / "Tiny", MODEL, **LLAMA))
    three = read_layout(write_model(tmp_path / "three" / "Tiny", MODEL, files=3, **LLAMA))
    assert one == three


def test_several_files_without_an_index_are_the_same_too(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, files=3, **LLAMA)
    with_index = read_layout(folder)
    (folder / "model.safetensors.index.json").unlink()
    assert read_layout(folder) == with_index


def test_a_model_without_a_head_is_tied(tmp_path):
    shapes = {name: shape for name, shape in MODEL.items() if name != "lm_head.weight"}
    layout = read_layout(write_model(tmp_path / "Tied", shapes, **LLAMA))
    assert layout.tied_embedding
    assert (layout.embedding_bytes, layout.head_bytes) == (800, 16)


def test_a_copy_of_the_embedding_as_head_is_not_counted(tmp_path):
    layout = read_layout(write_model(tmp_path / "Tied", MODEL, tie_word_embeddings=True, **LLAMA))
    assert layout.tied_embedding
    assert layout.head_bytes == 16


def test_towers_and_multi_token_prediction_are_left_out(tmp_path):
    prefix = "language_model.model."
    shapes = {
        f"{prefix}embed_tokens.weight": (50, 8),
        f"{prefix}norm.weight": (8,),
        "language_model.lm_head.weight": (50, 8),
        "vision_tower.blocks.0.attn.weight": (100, 100),
        "multi_modal_projector.weight": (100, 100),
        "language_model.mtp.layers.0.weight": (100, 100),
        **decoder(f"{prefix}layers.", 5),
    }
    layout = read_layout(write_model(tmp_path / "Seeing", shapes, model_type="qwen3_5", text_config=LLAMA))
    assert layout.layer_bytes == (20, 40, 60, 80)
    assert layout.weight_bytes == 200 + 800 + 816


def test_what_nobody_knows_is_on_the_last_stage(tmp_path):
    layout = read_layout(write_model(tmp_path / "Odd", MODEL | {"model.novelty": (7,)}, **LLAMA))
    assert layout.head_bytes == 816 + 14


def test_quantized_groups_count_together(tmp_path):
    shapes = dict(MODEL)
    for name in MODEL:
        shapes |= {name.replace(".weight", ".scales"): (1,), name.replace(".weight", ".biases"): (1,)}
    layout = read_layout(write_model(tmp_path / "Tiny-4bit", shapes, **LLAMA))
    assert layout.layer_bytes == (28, 48, 68, 88)
    assert layout.embedding_bytes == 804


def test_what_a_tensor_group_divides_is_told_from_what_each_rank_holds_whole(tmp_path):
    shapes = dict(ENDS)
    for layer in range(4):
        path = f"model.layers.{layer}."
        shapes |= {f"{path}self_attn.o_proj.weight": (8, 8), f"{path}mlp.down_proj.weight": (8, 24)}
        shapes |= {f"{path}input_layernorm.weight": (8,), f"{path}self_attn.o_proj.bias": (8,)}
    layout = read_layout(write_model(tmp_path / "Tiny", shapes, **LLAMA))
    assert layout.layer_bytes == (2 * (64 + 192 + 8 + 8),) * 4
    assert layout.layer_divided_bytes == (2 * (64 + 192),) * 4
    assert layout.head_divided_bytes == 0


@pytest.mark.parametrize(("tied", "divided_bytes"), [(False, 800), (True, 0)])
def test_qwen3_5_divides_a_head_of_its_own(tmp_path, tied, divided_bytes):
    folder = write_model(tmp_path / "Qwen", MODEL, model_type="qwen3_5", tie_word_embeddings=tied, **LLAMA)
    assert read_layout(folder).head_divided_bytes == divided_bytes


def test_each_number_of_ranks_has_its_refusal(tmp_path):
    config = {**LLAMA, "hidden_size": 8, "intermediate_size": 24}
    refusals = read_layout(write_model(tmp_path / "Tiny", MODEL, **config)).tensor_refusals
    assert refusals[0] == ""
    assert refusals[1] == (
        "Tiny has 8 attention heads, which 3 nodes cannot share equally; "
        "choose another number of nodes or pipeline mode."
    )
    assert [number for number, reason in enumerate(refusals, 2) if not reason] == [2]


def test_weights_of_modelopt_are_not_shared(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, **LLAMA)
    (folder / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}')
    assert all("quantized in a way" in reason for reason in read_layout(folder).tensor_refusals)


def test_the_name_of_a_snapshot_is_its_repository(tmp_path):
    snapshot = tmp_path / "models--mlx-community--Tiny-Llama" / "snapshots" / "0123456789abcdef"
    assert read_layout(write_model(snapshot, MODEL, **LLAMA)).name == "Tiny-Llama"
    assert model_name(tmp_path / "snapshots" / "mine") == "mine"


def test_a_relative_folder_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(write_model(tmp_path / "Tiny", MODEL, **LLAMA))
    assert read_layout(Path()).name == "Tiny"


def refused(folder) -> str:
    with pytest.raises(PomonaError) as caught:
        read_layout(folder)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, files=3, **LLAMA)
    (folder / "model-00002-of-00003.safetensors").unlink()
    sentence = refused(folder)
    assert "Tiny lacks 1 of its 3 model files ('model-00002-of-00003.safetensors')" in sentence
    assert "fetch the model again" in sentence


def test_a_link_to_nothing_is_a_missing_file(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, files=2, **LLAMA)
    (folder / "model-00002-of-00002.safetensors").unlink()
    (folder / "model-00002-of-00002.safetensors").symlink_to("../../blobs/gone")
    assert "lacks 1 of its 2 model files" in refused(folder)


def test_missing_tensors_are_named(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, files=2, **LLAMA)
    part = {name: shape for name, shape in list(MODEL.items())[1::2] if ".1." not in name}
    write_weights(folder / "model-00002-of-00002.safetensors", part)
    assert "lack 'model.layers.1." in refused(folder)


def test_many_missing_tensors_are_counted(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, files=2, **LLAMA)
    write_weights(folder / "model-00002-of-00002.safetensors", {})
    assert "and 2 more, which its index promises" in refused(folder)


@pytest.mark.parametrize(("lost", "named"), [((2,), "nothing of layer 2:"), ((0, 3), "nothing of layers 0, 3:")])
def test_a_layer_without_tensors_is_named(tmp_path, lost, named):
    shapes = {name: shape for name, shape in MODEL.items() if not any(f"layers.{layer}." in name for layer in lost)}
    assert named in refused(write_model(tmp_path / "Tiny", shapes, **LLAMA))


def test_many_missing_layers_are_counted(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, **(LLAMA | {"num_hidden_layers": 40}))
    assert "layers 4, 5, 6, 7, 8 and 31 more" in refused(folder)


def test_a_model_without_layers_cannot_be_split(tmp_path):
    assert "no layers that Pomona can tell apart" in refused(write_model(tmp_path / "Flat", ENDS, **LLAMA))


@pytest.mark.parametrize(
    ("file_name", "kind"), [("pytorch_model.bin", "pickle"), ("model.pt", "pickle"), ("model-Q4.gguf", "GGUF")]
)
def test_other_formats_are_not_loaded(tmp_path, file_name, kind):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **LLAMA}))
    (tmp_path / file_name).touch()
    assert f"as {kind} files only" in refused(tmp_path)


def test_a_folder_with_a_configuration_alone_has_no_weights(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **LLAMA}))
    assert "has no weights" in refused(tmp_path)


def test_any_other_folder_is_no_model(tmp_path):
    assert "is no model folder" in refused(tmp_path)
    assert "is no model folder" in refused(tmp_path / "missing")


@pytest.mark.parametrize(
    "name",
    [
        "../secret.safetensors",
        "/etc/passwd",
        "sub/model.safetensors",
        "model.bin",
        "",
        "..",
        "a\0.safetensors",
        "\ud800.safetensors",
        "x" * 300 + ".safetensors",
    ],
)
def test_an_index_names_files_of_its_folder_only(tmp_path, name):
    folder = write_model(tmp_path / "Tiny", MODEL, **LLAMA)
    index = json.dumps({"weight_map": {"model.norm.weight": name}})
    (folder / "model.safetensors.index.json").write_text(index)
    refused(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"weight_map": [1]}', "[" * 50_000])
def test_a_damaged_index_is_said(tmp_path, text):
    folder = write_model(tmp_path / "Tiny", MODEL, **LLAMA)
    (folder / "model.safetensors.index.json").write_text(text)
    assert "model.safetensors.index.json of Tiny is damaged" in refused(folder)


def test_a_damaged_file_is_named(tmp_path):
    folder = write_model(tmp_path / "Tiny", MODEL, **LLAMA)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "model.safetensors is damaged: it has " in refused(folder)
