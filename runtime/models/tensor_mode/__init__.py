"""Tensor mode, decided before anything starts: how many ranks can share a model's layers, and what each of them holds.

Pure functions of a ``config.json`` and of tensor names, without mlx. How the layers are then shared is the business of
``runtime/engine/tensor_parallel``; tests hold the two together.
"""
