"""What MLX says of this machine's GPU, as one JSON object, for whoever keeps MLX out of its own process.

python -m runtime.engine.device_info
"""

from __future__ import annotations

import json
import sys

import mlx.core as mx


def main() -> int:
    """Print ``mlx.core.device_info()``."""
    sys.stdout.write(json.dumps(mx.device_info()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
