"""The split editor: the model as one bar, a boundary between neighbours, a card per node."""
