"""`pomona plan` as a person runs it: its lines, its JSON, its exit status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.cli.commands import main
from runtime.cli.plan import ImaginedNode, parse_node


def plan(*arguments: str) -> int:
    try:
        return main(["plan", *arguments], lambda *_: 0)
    except SystemExit as left:
        return int(left.code or 0)


def planned(capsys, *arguments: str) -> dict[str, Any]:
    status = plan("demo", "--json", *arguments)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == (0 if report["fits"] else 2)
    return report


def test_the_best_split_of_the_demo_model_as_json(capsys):
    report = planned(
        capsys, "--node", "Air=100MB@40", "--node", "Studio=300MB@400", "--node", "Old=1@1", "--context", "512"
    )
    assert report["fits"]
    assert (report["mode"], report["goal"], report["refusal"]) == ("pipeline", "chat", None)
    assert [(stage["node"], stage["first_layer"], stage["last_layer"]) for stage in report["stages"]] == [
        ("Studio", 0, 29)
    ]
    assert {unused["node"] for unused in report["unused"]} == {"Air", "Old"}
    assert all("tok/s without it" in unused["reason"] for unused in report["unused"])
    for stage in report["stages"]:
        needed = stage["weight_bytes"] + stage["kv_bytes"] + stage["reserve_bytes"]
        assert needed <= stage["budget_bytes"]
    assert set(report["predicted"]) >= {
        "chat_tokens_per_second",
        "requests_tokens_per_second",
        "ttft_seconds_1k",
    }


@pytest.mark.parametrize("goal", ["chat", "requests", "even", "room"])
def test_every_goal_covers_every_layer(capsys, goal):
    nodes = ("--node", "a=1@10", "--node", "b=1@20", "--node", "c=1@30")
    report = planned(capsys, *nodes, "--goal", goal)
    assert report["fits"]
    edges = [(stage["first_layer"], stage["last_layer"]) for stage in report["stages"]]
    assert [layer for first, last in edges for layer in range(first, last + 1)] == list(range(30))


def test_a_split_by_hand_that_does_not_fit_shows_its_stages_and_what_helps(capsys):
    report = planned(capsys, "--node", "a=1", "--node", "b=80MB", "--split", "10,20", "--context", "512")
    assert not report["fits"]
    assert [stage["last_layer"] for stage in report["stages"]] == [9, 29]
    assert report["refusal"].startswith("b lacks ")
    assert report["changes"][0]["kind"] == "boundary"
    moved = report["changes"][0]["amount"]
    split = f"{10 + moved},{20 - moved}"
    assert planned(capsys, "--node", "a=1", "--node", "b=80MB", "--split", split, "--context", "512")["fits"]


def test_tensor_mode_gives_every_node_its_share(capsys):
    report = planned(capsys, "--mode", "tensor", "--node", "a=1", "--node", "b=1", "--node", "c=1")
    assert [stage["node"] for stage in report["stages"]] == ["a", "b", "c"]
    assert "slower than one node" in report["warning"]
    refused = planned(capsys, "--mode", "tensor", "--node", "a=1", "--node", "b=1")
    assert "9 attention heads" in refused["refusal"]


def test_in_tensor_mode_the_numbers_of_nodes_that_work_are_named_and_why_others_do_not(capsys):
    nodes = ("--node", "a=1", "--node", "b=1", "--node", "c=1")
    two, three = planned(capsys, "--mode", "tensor", *nodes)["tensor_sizes"]
    assert (two["nodes"], two["refusal"]) == (2, "9 attention heads, which 2 nodes cannot share")
    assert (three["nodes"], three["refusal"]) == (3, "")
    assert plan("demo", "--mode", "tensor", *nodes) == 0
    assert "Tensor mode works over 3 nodes; not over 2: 9 attention heads" in capsys.readouterr().out


def test_equal_nodes_with_a_fast_link_are_offered_as_a_group_and_a_slow_one_is_warned_of(capsys):
    nodes = [word for name in "abc" for word in ("--node", f"{name}=1@10")]
    pairs = ("a,b", "b,c", "a,c")
    fast = [word for pair in pairs for word in ("--link", f"{pair}=0.001@8")]
    offer = planned(capsys, *nodes, *fast)["offer"]
    assert offer["groups"] == [["a", "b", "c"]]
    assert offer["words"].startswith("a + b + c as one tensor group: ")
    grouped = planned(capsys, *nodes, *fast, "--group", "a,b,c")
    assert grouped["predicted"] == offer["predicted"]
    assert (grouped["offer"], grouped["warning"]) == (None, None)
    slow = [word for pair in pairs for word in ("--link", f"{pair}=2@1")]
    assert planned(capsys, *nodes, *slow)["offer"] is None
    warned = planned(capsys, *nodes, *slow, "--group", "a,b,c")["warning"]
    assert warned.startswith("The group makes this slower: ")


def test_lines_for_people(capsys):
    assert plan("demo", "--node", "Air=1@40", "--node", "Studio=1@400") == 0
    text = capsys.readouterr().out
    assert "Studio  layers   0 to  29" in text
    assert "Air not used" in text
    assert "predicted, not measured" in text


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("Studio=96@400", ImaginedNode("Studio", 96 * 2**30, 400e9)),
        ("Anna's Air=1.5GB@68.25GB/s", ImaginedNode("Anna's Air", 3 * 2**29, 68.25e9)),
        ("a=b=500mb", ImaginedNode("a=b", 500 * 2**20, None)),
    ],
)
def test_a_node_on_the_command_line(text, node):
    assert parse_node(text) == node


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no node to plan for"),
        (["--node", "x"], "'x' is no node"),
        (["--node", "x=nan"], "is no node"),
        (["--node", "x=1@inf"], "is no node"),
        (["--node", "=1"], "is no node"),
        (["--node", "x=1", "--node", "x=2"], "named twice"),
        (["--node", "x=1", "--split", "31"], "adds up to 31"),
        (["--node", "x=1", "--split", "10,20"], "2 parts"),
        (["--node", "x=1", "--context", "0"], "at least 1"),
        (["--node", "x=1", "--context", "9999999999"], "more than any model has"),
        (["--node", "x=1", "--mode", "tensor", "--split", "30"], "takes no split"),
        (["--node", "x=50MB"], "x lacks"),
        (["--node", "x=1", "--goal", "best"], "invalid choice"),
        (["--node", "x=1", "--link", "x,y=1"], "no node named y"),
        (["--node", "x=1", "--link", "x=1"], "'x=1' is no link"),
        (["--link", "x,y=1"], "--link is for nodes that you describe"),
    ],
)
def test_bad_input_is_one_line_and_status_two(capsys, arguments, says):
    assert plan("demo", *arguments) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_a_folder_without_a_model_is_one_line(capsys, tmp_path):
    assert plan(str(tmp_path), "--node", "x=1") == 2
    assert "is no model folder" in capsys.readouterr().err
