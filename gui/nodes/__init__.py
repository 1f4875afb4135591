"""Nodes beyond the split: those that could be paired, and the dialogs by which trust comes and goes."""
