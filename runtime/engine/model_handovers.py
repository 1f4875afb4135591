"""The models whose layers hand on more than the hidden state, each described by a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.engine.handover import HIDDEN, Carried, Copied, Handover, OldKeys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import mlx.core as mx
    import mlx.nn as nn

    from runtime.engine.layer_calls import LayerCall


class _Dbrx(Handover):
    """A layer looks at the experts that its router chose, and so computes at once."""

    is_lazy = False


class _Skips(Handover):
    """Layers that return some of their arguments as a tuple."""

    results: tuple[str, ...] = ()

    def skip(self, call: LayerCall, _keys: OldKeys | None = None) -> Any:
        return tuple(call.arguments.get(name) for name in self.results)


class _Talkie(Handover):
    """Every layer adds the embedding once more."""

    every_call = True

    def hidden(self, _call: LayerCall) -> str:
        return "x"

    def taken(self, call: LayerCall) -> Carried:
        return {**super().taken(call), "embedding": call.arguments["e_x"]}

    def supply(self, call: LayerCall, received: Carried) -> None:
        call.arguments["e_x"] = received["embedding"]


class _Rwkv7(_Skips):
    """Every layer mixes in the first layer's values."""

    results = ("x", "v_first")

    def taken(self, call: LayerCall) -> Carried:
        return {**super().taken(call), **_present(first_values=call.arguments["v_first"])}

    def enter(self, call: LayerCall, received: Carried) -> None:
        super().enter(call, received)
        call.arguments["v_first"] = received["first_values"]


class _Hunyuan(_Skips):
    """Layers in groups: the first projects keys and values for all (cross-layer attention)."""

    results = ("x", "shared_kv_states")

    def taken(self, call: LayerCall) -> Carried:
        keys, values = call.arguments.get("shared_kv_states") or (None, None)
        return {**super().taken(call), **_present(keys=keys, values=values)}

    def enter(self, call: LayerCall, received: Carried) -> None:
        super().enter(call, received)
        if "keys" in received:
            call.arguments["shared_kv_states"] = received["keys"], received["values"]


class _KimiK3(_Skips):
    """Attention over the outputs of earlier blocks of layers, if the model has attention residuals."""

    results = ("x", "blocks")

    def taken(self, call: LayerCall) -> Carried:
        blocks = call.arguments.get("blocks")
        outputs = {} if blocks is None else _present(blocks=blocks.raw, inverse_sizes=blocks.inv_rms)
        return {**super().taken(call), **outputs}

    def enter(self, call: LayerCall, received: Carried) -> None:
        super().enter(call, received)
        blocks = call.arguments.get("blocks")
        if blocks is not None:
            blocks.raw, blocks.inv_rms = received["blocks"], received["inverse_sizes"]


class _MuseSpark(_Skips):
    """A layer makes the next one's normed input along with its own result."""

    results = ("x", "attn_input")

    def enter(self, call: LayerCall, received: Carried) -> None:
        from mlx_lm.models.muse_spark import pre_norm  # only this model has it

        super().enter(call, received)
        norm = call.layer.input_layernorm
        call.arguments["attn_input"] = pre_norm(received[HIDDEN], norm, dtype=norm.weight.dtype)

    def leave(self, call: LayerCall) -> None:
        call.arguments["next_norm"] = None  # its weight is on the next stage


class _DeepseekV41(_Skips):
    """Layers read compressed keys and chosen positions of earlier ones, through a dictionary.

    Compressed keys grow with the text: only the new ones cross, and the first layer of a stage keeps them in its own
    cache, in a field that it does not write itself (as in mlx-lm's own pipeline).
    """

    results = ("streams", "pre_mix")

    def __init__(self, model: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__(model, layers)
        self._config: Any = model.args
        longest = self._config.max_position_embeddings // min(filter(None, self._config.compress_ratios), default=1)
        entry_bytes = 4 * (self._config.head_dim + self._config.index_head_dim + self._config.index_topk)
        self.growing_bytes_per_token = entry_bytes + longest  # one flag for each compressed key

    def copies(self) -> list[Copied]:
        from mlx_lm.models import deepseek_v41 as parts  # only this model has them

        users: dict[tuple[str, int], list[int]] = {}
        for first in range(1, self._config.num_hidden_layers):
            for name, source in parts._crossing(self._config, first).items():  # noqa: SLF001  private in a pinned version
                if name in parts._CACHE_FIELDS:  # noqa: SLF001
                    users.setdefault((name, source), []).append(first)
        return [Copied(source, tuple(layers), name) for (name, source), layers in users.items()]

    def taken(self, call: LayerCall) -> Carried:
        from mlx_lm.models import deepseek_v41 as parts  # only this model has them

        shared, begin = call.arguments["shared"], call.arguments["start_pos"]
        end = begin + call.arguments["streams"].shape[1]
        carried = {**super().taken(call), "mix": call.arguments["pre_mix"]}
        for name, source in parts._crossing(self._config, call.index).items():  # noqa: SLF001  private in a pinned version
            state = shared.get(name)
            if state is not None and name in parts._CACHE_FIELDS:  # noqa: SLF001
                count = parts._entries(self._config, source, end) - parts._entries(self._config, source, begin)  # noqa: SLF001
                state = state[:, state.shape[1] - count :] if count else None
            carried |= _present(**{name: state})
        return carried

    def enter(self, call: LayerCall, received: Carried) -> None:
        from mlx_lm.models import deepseek_v41 as parts  # only this model has them

        super().enter(call, received)
        call.arguments["pre_mix"] = received["mix"]
        shared, cache = call.arguments["shared"], call.arguments["cache"]
        for name in parts._crossing(self._config, call.index):  # noqa: SLF001
            state = received.get(name)
            if name in parts._CACHE_FIELDS:  # noqa: SLF001
                if state is not None:
                    setattr(cache, name, parts._append(getattr(cache, name), state))  # noqa: SLF001
                state = getattr(cache, name)
            shared[name] = state


class _SharedKeys(Handover):
    """The last layers work on the keys and values of an earlier one, which a later stage keeps a copy of."""

    every_call = True


class _Afm7(_SharedKeys):
    def __init__(self, model: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__(model, layers)
        own_count = len(model.model.layers)
        self.key_sources = dict.fromkeys(range(own_count, len(layers)), own_count - 1)


class _Gemma(_SharedKeys):
    """Gemma 3n and the small Gemma 4: each layer also takes an embedding of its own."""

    def wanted(self, call: LayerCall) -> Carried:
        return _present(**{f"layer_input.{call.index}": call.arguments.get("per_layer_input")})

    def supply(self, call: LayerCall, received: Carried) -> None:
        if call.arguments.get("per_layer_input") is not None:
            call.arguments["per_layer_input"] = received[f"layer_input.{call.index}"]


class _Gemma3n(_Gemma):
    def __init__(self, model: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__(model, layers)
        shared = [layer.self_attn.is_kv_shared_layer for layer in layers]
        self.key_sources = _last_of_their_kind([layer.is_sliding for layer in layers], shared)


class _Gemma4(_Gemma):
    def __init__(self, model: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__(model, layers)
        shared = [not layer.self_attn.has_kv for layer in layers]
        self.key_sources = _last_of_their_kind([layer.layer_type for layer in layers], shared)

    def skip(self, call: LayerCall, keys: OldKeys | None = None) -> Any:
        return super().skip(call), keys and keys.fetched, keys and keys.offset


_OTHERS: dict[str, type[Handover]] = {
    "afm7": _Afm7,
    "dbrx": _Dbrx,
    "deepseek_v41": _DeepseekV41,
    "gemma3n": _Gemma3n,
    "gemma4_text": _Gemma4,
    "hunyuan": _Hunyuan,
    "kimi_k3": _KimiK3,
    "muse_spark": _MuseSpark,
    "rwkv7": _Rwkv7,
    "talkie": _Talkie,
}
"""By the module of mlx-lm that has the layers."""


def handover_of(model: nn.Module, layers: Sequence[nn.Module]) -> Handover:
    """How the layers of ``model`` hand on their work."""
    module = type(layers[0]).__module__.rpartition(".")[2]
    return _OTHERS.get(module, Handover)(model, layers)


def _present(**arrays: mx.array | None) -> Carried:
    return {name: array for name, array in arrays.items() if array is not None}


def _last_of_their_kind(kinds: Sequence[object], shared: Sequence[bool]) -> dict[int, int]:
    """For each layer without keys of its own, the last one of its kind that has some."""
    sources: Mapping[object, int] = {
        kind: index for index, (kind, is_shared) in enumerate(zip(kinds, shared, strict=True)) if not is_shared
    }
    return {index: sources[kinds[index]] for index, is_shared in enumerate(shared) if is_shared}
