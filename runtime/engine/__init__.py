"""What runs inside a worker: a stage of the model, the hops to its neighbours, the driver's schedule.

The only room that imports mlx and mlx_lm (``convert_gguf`` included, which runs in a process of its own).
"""
