"""``pomona models``: lists, layouts, fetching that goes on after a kill, and deleting."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from runtime.models.favourites import Favourites
from runtime.models.manifest import folder_manifest
from runtime.models.part_files import FullFolder, SplitFolder
from runtime.models.parts import model_parts, stage_parts
from runtime.models.store import ModelStore
from tests.hub import LocalHub, write_small_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiohttp import web

REPOSITORY = "someone/Small-Llama"


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_small_model(tmp_path / "origin", layers=12)


@pytest.fixture
def hub(folder) -> Iterator[LocalHub]:
    with LocalHub({REPOSITORY: folder}) as hub:
        yield hub


@pytest.fixture
def environment(tmp_path, hub) -> dict[str, str]:
    own = {"POMONA_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf")}
    return {**os.environ, **own, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def pomona(environment: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pomona", "models", *arguments]
    return subprocess.run(
        command, env=environment, input=stdin, capture_output=True, text=True, timeout=100, check=False
    )


def test_fetch_list_and_delete(environment, tmp_path):
    assert "no model on this machine yet" in pomona(environment).stderr
    done = pomona(environment, "fetch", REPOSITORY, "--split", "5,4,3")
    assert done.returncode == 0, done.stderr
    assert "is complete in" in done.stdout
    (listed,) = json.loads(pomona(environment, "--json").stdout)
    assert (listed["repository"], listed["layers_held"], listed["layer_count"]) == (REPOSITORY, 5, 12)
    assert listed["is_ours"]
    for name in ("someone/Wanted", REPOSITORY):
        Favourites(tmp_path / "home").add(name)
    first, here, wanted, _empty, disk = pomona(environment, "--only-here").stdout.splitlines()
    assert first.startswith(f"{REPOSITORY}, a favourite: 12 layers, ")
    assert "any split in stages; tensor mode over 2, 4 nodes" in first
    assert here.split("  ")[2].startswith("this machine")
    assert "5 of 12 layers" in here
    assert wanted == "someone/Wanted, a favourite: on no node in reach"
    assert disk.startswith("this machine: 0.00 GB of models, ")
    assert pomona(environment, "favourite", "someone/Wanted", "--remove").returncode == 0
    assert Favourites(tmp_path / "home").all() == (REPOSITORY,)
    assert "GB are free again" in pomona(environment, "rm", REPOSITORY).stdout
    refused = pomona(environment, "rm", REPOSITORY)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert list((tmp_path / "home" / "models").iterdir()) == []


def test_the_layout_of_a_model_on_the_hub_reads_no_weights(environment, hub, folder):
    report = json.loads(pomona(environment, "layout", REPOSITORY, "--json").stdout)
    assert report["layout"]["layer_bytes"] == [
        part.tensor_bytes for name, part in model_parts(folder_manifest(folder)).items() if name.startswith("layer")
    ]
    assert {cache["kind"] for cache in report["caches"]} == {"full"}
    assert hub.content_bytes() < 20_000


def test_a_killed_fetch_goes_on_where_it_stopped(environment, hub, folder, tmp_path):
    held = asyncio.Event()
    requests = [0]

    async def hold(request: web.Request) -> web.StreamResponse | None:
        """After some chunks the hub falls silent, until the process is dead."""
        if request.path.startswith("/content/"):
            requests[0] += 1
            if requests[0] > 14:
                await held.wait()
        return None

    hub.fault = hold
    command = [sys.executable, "-m", "pomona", "models", "fetch", REPOSITORY]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if requests[0] > 8 and not line.startswith("this machine: 0.00 of 0.00 GB, 0 MB/s"):
                break
        process.send_signal(signal.SIGKILL)
    hub.fault = None
    asked = hub.content_bytes()
    assert pomona(environment, "fetch", REPOSITORY).returncode == 0
    (model,) = ModelStore(tmp_path / "home" / "models").all()
    parts, original = model.parts(), FullFolder(folder, model.manifest)
    assert set(model.held(parts.values())) == set(parts)
    for part in parts.values():
        whole = SplitFolder(model.folder).read(part, 0, part.byte_count)
        assert whole == original.read(part, 0, part.byte_count)
    again = hub.content_bytes() - asked
    assert again < sum(part.byte_count for part in parts.values()) - 2 * parts["layer-00001"].byte_count


def test_a_token_is_asked_for_by_name_and_kept(environment, hub):
    hub.token = "hf_secret"
    refused = pomona(environment, "fetch", REPOSITORY)
    assert refused.returncode == 2
    assert "pomona models token" in refused.stderr
    assert pomona(environment, "token", stdin="hf_secret\n").returncode == 0
    assert pomona(environment, "fetch", REPOSITORY, "--split", "1,11").returncode == 0


def test_search(environment):
    assert REPOSITORY in pomona(environment, "search", "llama").stdout


def test_a_split_that_does_not_fit_is_refused_in_one_line(environment):
    refused = pomona(environment, "fetch", REPOSITORY, "--split", "5,18,7")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "The model has 12 layers, and the split 30" in refused.stderr


def test_a_stage_of_a_fetched_model_is_what_it_needs(folder):
    parts = model_parts(folder_manifest(folder))
    assert stage_parts(parts, 0, 2) == ["embedding", "layer-00000", "layer-00001"]
    assert stage_parts(parts, 11, 12) == ["last", "layer-00011"]
