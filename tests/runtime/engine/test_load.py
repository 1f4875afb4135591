"""A stage reads its own tensors from the files and nothing else, and asks for all of them before it reads one."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import pytest

from runtime.engine.load import build_stage
from runtime.errors import PomonaError
from runtime.models.layout import read_layout
from runtime.models.safetensors_header import read_header
from tests.matrix.staged import in_stages, whole
from tests.runtime.engine.sharded import is_of, save_sharded

if TYPE_CHECKING:
    from collections.abc import Callable

SPLIT = (3, 2, 2)
SLACK_BYTES = 64 << 10
"""Headers, configuration, and what Python reads when it imports a module."""


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sharded(tmp_path_factory.mktemp("models") / "sharded")


def copied(folder: Path, target: Path, change: Callable[[str], bytes | None]) -> Path:
    """A copy in which ``change`` may put other bytes in a tensor's place: a pattern that is repeated."""
    target.mkdir()
    for file in folder.iterdir():
        data = bytearray(file.read_bytes())
        if file.suffix == ".safetensors":
            for name, tensor in read_header(file).items():
                if pattern := change(name):
                    data[tensor.begin : tensor.end] = pattern * (tensor.byte_count // len(pattern))
        (target / file.name).write_bytes(data)
    return target


def test_a_sharded_checkpoint_is_the_same_model(sharded):
    for expected, logits in zip(whole(sharded), in_stages(sharded, SPLIT), strict=True):
        assert expected.tobytes() == logits.tobytes()


def test_no_stage_reads_what_is_anothers(sharded, tmp_path):
    not_a_number = b"\xff\xff\xff\xff"
    edges = [0, 3, 5, 7]
    folders = [
        copied(
            sharded,
            tmp_path / f"stage{first}",
            lambda name, first=first, end=end: None if is_of(name, first, end, 7) else not_a_number,  # type: ignore[misc]
        )
        for first, end in pairwise(edges)
    ]
    for expected, logits in zip(whole(sharded), in_stages(folders, SPLIT), strict=True):
        assert expected.tobytes() == logits.tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts bytes in /proc on Linux alone")
@pytest.mark.parametrize(("first", "end"), [(0, 3), (3, 5), (5, 7), (6, 7)])
def test_a_stage_reads_as_many_bytes_as_its_tensors_have(sharded, first, end):
    tensors = {name: tensor for file in sharded.glob("*.safetensors") for name, tensor in read_header(file).items()}
    own_bytes = sum(tensor.byte_count for name, tensor in tensors.items() if is_of(name, first, end, 7))
    build_stage(sharded, first, end, None)  # what is imported on the way is imported now
    before = read_bytes()
    stage = build_stage(sharded, first, end, None)
    lazily = read_bytes() - before
    assert lazily < SLACK_BYTES, "weights were read before the stage was asked to load"
    for _bytes in stage.load():
        pass
    stage.warm_up()
    assert own_bytes <= read_bytes() - before - lazily <= own_bytes + SLACK_BYTES


def read_bytes() -> int:
    """What this process has read from files so far."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


def test_what_is_missing_is_named_before_anything_is_read(sharded, tmp_path):
    lacking = without(sharded, tmp_path / "lacking", lambda name: "layers.4.self_attn.o_proj" in name)
    build_stage(lacking, 0, 4, None)  # these layers are complete
    with pytest.raises(
        PomonaError, match=r"lack model\.layers\.4\.self_attn\.o_proj\.weight, which layers 4 to 6 need"
    ):
        build_stage(lacking, 4, 7, None)
    (lacking / "model-00002-of-00004.safetensors").unlink()
    with pytest.raises(PomonaError, match=r"lack .* and \d+ more, which layers 0 to 2 need"):
        build_stage(lacking, 0, 3, None)
    with pytest.raises(PomonaError, match=r"lacks 1 of its 4 model files \('model-00002-of-00004.safetensors'\)"):
        read_layout(lacking)


def test_the_first_stage_needs_the_embedding_and_the_last_norm_and_head(sharded, tmp_path):
    headless = without(sharded, tmp_path / "headless", lambda name: "lm_head" in name)
    build_stage(headless, 0, 3, None)
    with pytest.raises(PomonaError, match=r"lack lm_head\.weight"):
        build_stage(headless, 3, 7, None)
    blind = without(sharded, tmp_path / "blind", lambda name: "embed_tokens" in name)
    build_stage(blind, 3, 7, None)
    with pytest.raises(PomonaError, match="embed_tokens"):
        build_stage(blind, 0, 3, None)


def test_tensors_that_do_not_fit_are_refused(sharded, tmp_path):
    config = json.loads((sharded / "config.json").read_text())
    other = without(sharded, tmp_path / "other", lambda _name: False)
    (other / "config.json").write_text(json.dumps({**config, "vocab_size": 256}))
    with pytest.raises(PomonaError, match="hold tensors of other shapes than its config"):
        build_stage(other, 0, 3, None)
    mx.save_safetensors(str(other / "model-more.safetensors"), {"model.layers.0.surprise": mx.zeros((2,))})
    with pytest.raises(PomonaError, match=r"no place for: model\.layers\.0\.surprise"):
        build_stage(other, 0, 3, None)


def without(folder: Path, target: Path, is_left_out: Callable[[str], bool]) -> Path:
    """A copy that lacks some tensors; its index does not know them either."""
    target.mkdir()
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"] = {name: file for name, file in index["weight_map"].items() if not is_left_out(name)}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))
    (target / "config.json").write_bytes((folder / "config.json").read_bytes())
    for file in folder.glob("*.safetensors"):
        loaded: Any = mx.load(str(file))
        mx.save_safetensors(
            str(target / file.name), {name: array for name, array in loaded.items() if not is_left_out(name)}
        )
    return target
