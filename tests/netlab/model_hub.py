"""A hub on a host of a lab: ``python -m tests.netlab.model_hub FOLDER NAME ADDRESS``; ends with its standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.hub import LocalHub

PORT = 8080


def main(folder: str, name: str, address: str) -> None:
    with LocalHub({name: Path(folder)}, host=address, port=PORT, content_host=address):
        sys.stdout.write("it listens\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
