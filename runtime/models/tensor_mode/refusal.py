"""Why so many ranks cannot share the layers of a model, from its ``config.json`` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.models.tensor_mode.parts import Numbers, Shared, Sharing, UnsaidError, UnsharedError
from runtime.models.tensor_mode.quantization import group_sizes, quantization
from runtime.models.tensor_mode.types import LEFT_OUT, SHARINGS, language_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_RANKS = 16
"""The largest tensor group that is thought of."""
_OTHER_MODE = "; use pipeline mode."
_OTHER_NUMBER = "; choose another number of nodes or pipeline mode."


def tensor_refusal(config: Mapping[str, Any], rank_count: int, name: str = "This model") -> str | None:
    """One sentence that says why ``rank_count`` ranks cannot share each layer, or None if they can.

    ``config`` is a whole ``config.json``. Unequal shares load without an error in MLX and then fail, or give garbage,
    so whatever is not known to divide is refused.
    """
    if rank_count == 1:
        return None
    divided = _divided(config, name)
    return divided if isinstance(divided, str) else _unequal(divided, rank_count, name)


def tensor_refusals(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """:func:`tensor_refusal` for groups of 2 to 16 ranks; empty where there is none."""
    divided = _divided(config, name)
    if isinstance(divided, str):
        return (divided,) * (MAX_RANKS - 1)
    return tuple(_unequal(divided, rank_count, name) or "" for rank_count in range(2, MAX_RANKS + 1))


def in_short(refusal: str, name: str) -> str:
    """Of a refusal for the model ``name``, the reason alone: ``64 attention heads, which 3 nodes cannot share``."""
    reason = refusal.removesuffix(_OTHER_MODE).removesuffix(_OTHER_NUMBER).removesuffix(" equally")
    return reason.removeprefix(f"{name} has ").removeprefix(f"{name} ")


def with_numbers(refusal: str, numbers: str) -> str:
    """A refusal that names the numbers of nodes that can: ``2 or 4``."""
    reason = refusal.removesuffix(_OTHER_NUMBER)
    return refusal if reason == refusal else f"{reason}; choose {numbers} nodes, or pipeline mode."


def divides_head(config: Mapping[str, Any]) -> bool:
    """Whether an output head of its own is divided like the layers."""
    sharing = SHARINGS.get(language_model(config)[0])
    return sharing is not None and sharing.divides_head


def _unequal(divided: list[Shared], rank_count: int, name: str) -> str | None:
    for each in divided:
        if each.count % rank_count and not (each.repeats and rank_count % each.count == 0):
            return f"{name} has {each.count} {each.noun}, which {rank_count} nodes cannot share equally{_OTHER_NUMBER}"
    return None


def _divided(config: Mapping[str, Any], name: str) -> list[Shared] | str:
    """All of which every rank must take an equal part; or why that can't be told."""
    model_type, text, wrapper_defaults = language_model(config)
    sharing = SHARINGS.get(model_type)
    if sharing is None:
        if model_type in LEFT_OUT:
            return _unshared(name, LEFT_OUT[model_type])
        return f"Tensor mode does not know how to share the layers of a {model_type} model{_OTHER_MODE}"
    settings = quantization(config)
    if settings is None:
        return f"{name} is quantized in a way that tensor mode does not share{_OTHER_MODE}"
    try:
        return list(_all_divided(sharing, Numbers(text, {**sharing.defaults, **wrapper_defaults}), settings))
    except UnsharedError as unshared:
        return _unshared(name, str(unshared))
    except UnsaidError as unsaid:
        return f"{name} does not say its {unsaid} in config.json, which tensor mode needs to know{_OTHER_MODE}"
    except (TypeError, ValueError, ArithmeticError):
        return f"{name} has a config.json that tensor mode cannot read{_OTHER_MODE}"


def _unshared(name: str, what: str) -> str:
    return f"{name} has {what}, which tensor mode does not share{_OTHER_MODE}"


def _all_divided(sharing: Sharing, numbers: Numbers, settings: Mapping[str, Any]) -> Iterator[Shared]:
    for part in sharing.parts:
        for each in part(numbers):
            yield each
            for size in group_sizes(settings, each.projection):
                if each.inputs % size == 0:  # what does not divide into groups stays unquantized
                    groups = each.inputs // size
                    yield Shared(groups, f"quantization groups in each row of {each.projection}")
    if sharing.divides_head and not numbers.get("tie_word_embeddings"):
        yield Shared(numbers.count("vocab_size"), "tokens in its vocabulary")
