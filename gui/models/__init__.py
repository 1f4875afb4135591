"""Choosing the model: the page of a window that has none yet, and the menu."""
