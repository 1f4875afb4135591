"""Is a split model the same as the whole one? Tried out with real worker processes."""
