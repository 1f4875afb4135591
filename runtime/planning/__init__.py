"""From a model's layout and nodes to who holds which layers. Pure functions, no I/O."""
