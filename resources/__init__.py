"""What a node has: chip, memory, versions."""
