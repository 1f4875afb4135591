"""Claims about what Pomona does, on real parts: worker processes, sockets, windows, weights."""
