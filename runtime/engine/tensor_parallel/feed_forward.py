"""Multi-layer perceptrons and mixtures of experts: every rank has some of the hidden features, of every expert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.switch_layers import SwitchGLU, SwitchMLP

from runtime.engine.tensor_parallel.slices import (
    share_columns,
    share_columns_in_place,
    share_rows,
    share_rows_in_place,
)
from runtime.models.tensor_mode.modules import MLPS, MlpNames

if TYPE_CHECKING:
    from collections.abc import Iterator


class Summed(nn.Module):
    """A block whose ranks each compute a part of its result: the sum over the group is the whole."""

    def __init__(self, block: nn.Module, group: mx.distributed.Group) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.block = block
        self._group = group

    def __call__(self, *args: Any, **kwargs: Any) -> mx.array:
        """The block's result, the same on every rank."""
        return mx.distributed.all_sum(self.block(*args, **kwargs), group=self._group)


def mlp_names(module: nn.Module) -> MlpNames | None:
    """How ``module`` calls its projections, if it is a perceptron."""
    return next((names for names in MLPS if {*names.inputs, names.output} <= set(module)), None)


def share_mlp(mlp: nn.Module, names: MlpNames, group: mx.distributed.Group) -> None:
    """Leave this rank's hidden features; the output projection sums."""
    for name in names.inputs:
        width = mlp[name].weight.shape[0] // names.sections
        share_rows(mlp, name, group, [width * section for section in range(1, names.sections)])
    share_columns(mlp, names.output, group)


def is_mixture(module: nn.Module) -> bool:
    """Whether ``module`` chooses among experts."""
    return any(isinstance(child, SwitchGLU | SwitchMLP) for child in _children(module)) or isinstance(
        module.get("experts"), list
    )


def share_mixture(owner: Any, key: Any, group: mx.distributed.Group) -> None:
    """Leave this rank's hidden features of every expert, routed and shared, and sum once, behind the block.

    The router stays whole, so all ranks choose alike. Right because a block's result is linear in what experts return.
    """
    for module in _children(owner[key]):
        names = mlp_names(module)
        if names is not None:
            for name in names.inputs:
                share_rows_in_place(module[name], group, names.sections)
            share_columns_in_place(module[names.output], group)
    owner[key] = Summed(owner[key], group)


def _children(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.values():
        for member in child if isinstance(child, list) else [child]:
            if isinstance(member, nn.Module):
                yield member
