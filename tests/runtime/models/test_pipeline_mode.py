"""What cannot be split, or not be run at all, is known from config.json alone, and said in one sentence."""

from __future__ import annotations

from pathlib import Path

import mlx_lm.models
import pytest
from mlx_lm.utils import MODEL_REMAPPING

from runtime.errors import PomonaError
from runtime.models.layout import read_layout
from runtime.models.pipeline_mode import MODEL_TYPES, pipeline_refusal, unknown_model
from runtime.planning.model_cost import model_cost
from runtime.planning.plan import Plan, PlanNode, Refusal, make_plan, stage_weight_bytes
from tests.matrix.configs import CONFIGS, all_variants
from tests.runtime.models.files import decoder, write_model

ENDS = {"model.embed_tokens.weight": (50, 8), "model.norm.weight": (8,), "lm_head.weight": (50, 8)}
NODES = [PlanNode(name, name, 1 << 40) for name in ("one", "two")]


def modules() -> set[str]:
    """The modules of mlx-lm that have a model."""
    files = Path(mlx_lm.models.__file__).parent.glob("*.py")
    return {file.stem for file in files if "class Model(" in (text := file.read_text()) or "import Model " in text}


def test_the_types_are_those_of_the_installed_mlx_lm():
    assert modules() | set(MODEL_REMAPPING) == MODEL_TYPES


def test_the_matrix_has_a_configuration_of_every_type():
    assert modules() == set(CONFIGS)


def test_only_models_with_several_rounds_through_their_layers_cannot_be_split():
    refused = {(name, variant) for name, variant, config in all_variants() if pipeline_refusal(config, "It")}
    assert refused == {("iquestloopcoder", "default"), ("nanbeige", "looped")}


@pytest.mark.parametrize(
    ("config", "rounds"),
    [
        ({"model_type": "iquestloopcoder"}, 2),
        ({"model_type": "nanbeige", "num_loops": 3}, 3),
        ({"model_type": "nanbeige", "num_loops": 1, "loop_loss_weights": [0.5]}, 2),
    ],
)
def test_several_rounds_are_counted_in_the_refusal(config, rounds):
    assert pipeline_refusal(config, "Loopy") == (
        f"Loopy sends every token through its layers {rounds} times, and a pipeline does so once: "
        "use tensor mode or one node."
    )


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"model_type": "gpt5"}, "of the type gpt5, which mlx-lm does not know"),
        ({"model_type": "olmo"}, "needs the package ai2-olmo"),
        ({"model_type": "llama", "model_file": "modeling.py"}, r"program code of its own \(modeling.py\)"),
    ],
)
def test_what_mlx_lm_cannot_run_is_refused_with_the_layout(config, complaint, tmp_path):
    assert unknown_model(config, "It")
    shapes = ENDS | decoder("model.layers.", 4)
    folder = write_model(tmp_path / "It", shapes, **{"num_hidden_layers": 4, "num_attention_heads": 8, **config})
    with pytest.raises(PomonaError, match=complaint):
        read_layout(folder)


def test_an_adapter_is_not_left_out_in_silence(tmp_path):
    folder = write_model(
        tmp_path / "It", ENDS | decoder("model.layers.", 4), num_hidden_layers=4, num_attention_heads=8
    )
    read_layout(folder)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(PomonaError, match="has an adapter beside its weights"):
        read_layout(folder)


def test_a_plan_of_several_stages_is_refused_and_one_node_is_not(tmp_path):
    shapes = ENDS | decoder("model.layers.", 4)
    folder = write_model(
        tmp_path / "Loopy", shapes, num_hidden_layers=4, num_attention_heads=8, model_type="iquestloopcoder"
    )
    layout = read_layout(folder)
    for split in (None, (2, 2), (1, 3)):
        refusal = make_plan(layout, NODES, split)
        assert isinstance(refusal, Refusal)
        assert refusal.reason == layout.pipeline_refusal
    assert isinstance(make_plan(layout, NODES, (4, 0)), Plan)
    assert isinstance(make_plan(layout, NODES[:1]), Plan)


def test_the_best_split_of_such_a_model_is_one_node(tmp_path):
    shapes = ENDS | decoder("model.layers.", 4)
    folder = write_model(
        tmp_path / "Loopy", shapes, num_hidden_layers=4, num_attention_heads=8, model_type="iquestloopcoder"
    )
    assert model_cost(read_layout(folder)).forbidden_cuts == {1, 2, 3}


def test_what_the_first_stage_alone_holds_is_no_part_of_a_tied_head(tmp_path):
    shapes = ENDS | {"model.embed_tokens_per_layer.weight": (50, 4)} | decoder("model.layers.", 4)
    del shapes["lm_head.weight"]
    layout = read_layout(
        write_model(tmp_path / "Small", shapes, num_hidden_layers=4, num_attention_heads=8, model_type="gemma4")
    )
    assert (layout.embedding_bytes, layout.first_alone_bytes) == (1200, 400)
    assert stage_weight_bytes(layout, 0, 1) == 1200 + layout.layer_bytes[0]
    assert stage_weight_bytes(layout, 3, 4) == 800 + 16 + layout.layer_bytes[3]
    cost = model_cost(layout)
    assert cost.embedding_bytes == 800
    assert cost.layers[0].weight_bytes == layout.layer_bytes[0] + 400
