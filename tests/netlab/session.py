"""A session over the nodes of a lab, as the console runs it: ``python -m tests.netlab.session FOLDER SPLIT ID...``.

The prompt is long, so that hidden states weigh more than what agents and controller say to each other.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from runtime.agent.folder import data_folder
from runtime.cli.console import Question, run_console

PROMPT = "Studio, mini and Air share one model. " * 10 + "What is the capital of France?"


def main(folder: str, split: str, *node_ids: str) -> int:
    question = Question(PROMPT, max_tokens=8, temperature=0.0, seed=None)
    layers = [int(part) for part in split.split(",")]
    session = run_console(data_folder(), Path(folder), node_ids, layers, "pipeline", question, as_json=True)
    return asyncio.run(session)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
