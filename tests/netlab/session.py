"""A session over the nodes of a lab, as the console runs it: ``python -m tests.netlab.session FOLDER SPLIT ID...``.

The prompt is long, so that hidden states weigh more than what agents and controller say to each other.
"""

from __future__ import annotations

import asyncio
import sys

from runtime.cli.console import Question, run_console
from runtime.cli.place import PlaceOptions

PROMPT = "Studio, mini and Air share one model. " * 10 + "What is the capital of France?"


def main(folder: str, split: str, *node_ids: str) -> int:
    question = Question(PROMPT, max_tokens=8, temperature=0.0, seed=None)
    layers = tuple(int(part) for part in split.split(","))
    return asyncio.run(run_console(PlaceOptions(folder, node_ids, split=layers), question, as_json=True))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
