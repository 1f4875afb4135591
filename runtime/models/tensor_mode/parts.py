"""What the ranks of a tensor group divide in each kind of layer, from the numbers of a ``config.json``. Pure.

A *part* is a function from these numbers to the things of which every rank takes an equal share. It says the same as
the strategy in ``runtime/engine/tensor_parallel`` (or mlx-lm's own ``shard``) does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MAX_COUNT = 2**31
_MAX_LAYERS = 100_000


class UnsaidError(Exception):
    """A config does not say a number that decides, or says nonsense; its argument is the number's key."""


class UnsharedError(Exception):
    """A model has something that tensor mode does not share; its argument is what."""


@dataclass(frozen=True, slots=True)
class Shared:
    """``count`` things of which every rank takes as many as every other."""

    count: int
    noun: str
    """What they are, in the plural, for a sentence."""
    inputs: int = 0
    """Where they are read by a projection that is summed: how many inputs it has. Quantized, its groups divide too."""
    projection: str = ""
    """That projection's name in its module."""
    repeats: bool = False
    """Whether more ranks than things is fine too, each thing then being on several ranks."""


class Numbers:
    """The numbers of one model's config, with those that mlx-lm takes for what it leaves out."""

    def __init__(self, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._config = config
        self._defaults = defaults

    def get(self, key: str) -> Any:
        """Whatever stands under ``key``; None if nothing does."""
        value = self._config.get(key)
        return self._defaults.get(key) if value is None else value

    def count(self, key: str) -> int:
        """A positive number. Raises :class:`UnsaidError`."""
        return _count(self.get(key), key)

    def count_or(self, key: str, otherwise: int) -> int:
        """A number that may be absent."""
        value = self.get(key)
        return otherwise if value is None or value == 0 else _count(value, key)

    def counts(self, key: str) -> list[int]:
        """A list with a number for each layer."""
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise UnsaidError(key)
        return [_count(item, key) for item in value]

    def within(self, key: str) -> Numbers:
        """A group of settings of its own."""
        value = self.get(key)
        if not isinstance(value, dict):
            raise UnsaidError(key)
        return Numbers(value, {})

    def layers(self) -> range:
        """The indices of the layers."""
        count = self.count("num_hidden_layers")
        if count > _MAX_LAYERS:
            raise UnsaidError("num_hidden_layers")
        return range(count)


def _count(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_COUNT:
        raise UnsaidError(key)
    return value


Part = Callable[[Numbers], Iterable[Shared]]


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the ranks of a group divide in a model of one type."""

    parts: tuple[Part, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What mlx-lm takes for numbers that the config leaves out."""
    divides_head: bool = False
    """Whether the output head is divided too, unless it is the embedding."""


Kinds = Callable[[Numbers], Iterable[bool]]
"""For each layer, whether it is a mixture of experts."""


def attention(
    output: str = "o_proj",
    *,
    heads: str = "num_attention_heads",
    key_value: str = "num_key_value_heads",
    size: str = "head_dim",
    width: str = "hidden_size",
) -> Part:
    """Heads, and those of keys and values, which are as many where the config does not say or has no key for them."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        count = numbers.count(heads)
        head_size = numbers.count_or(size, 0) or numbers.count(width) // count
        yield Shared(count, "attention heads", count * head_size, output)
        if key_value:
            yield Shared(numbers.count_or(key_value, count), "key-value heads")

    return part


def latent_attention(
    *, heads: str = "num_attention_heads", size: str = "v_head_dim", width: str = "hidden_size"
) -> Part:
    """Multi-head latent attention: keys and values are one narrow state that every rank computes whole."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        count = numbers.count(heads)
        head_size = numbers.count_or(size, 0) or numbers.count(width) // count
        yield Shared(count, "attention heads", count * head_size, "o_proj")

    return part


def delta_net(numbers: Numbers) -> Iterator[Shared]:
    """Linear attention by the gated delta rule."""
    yield Shared(numbers.count("linear_num_key_heads"), "key heads of linear attention")
    heads = numbers.count("linear_num_value_heads")
    inputs = heads * numbers.count("linear_value_head_dim")
    yield Shared(heads, "value heads of linear attention", inputs, "out_proj")


def features(key: str, projection: str = "down_proj", noun: str = "MLP features", times: str = "") -> Part:
    """The hidden features of a perceptron: ``key`` of them, as often as ``times`` says."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        count = numbers.count(key) * (numbers.count(times) if times else 1)
        yield Shared(count, noun, count, projection)

    return part


def mlp(key: str = "intermediate_size", projection: str = "down_proj") -> Part:
    """A dense perceptron."""
    return features(key, projection)


def experts(key: str = "moe_intermediate_size", projection: str = "down_proj") -> Part:
    """Routed experts, each of ``key`` features."""
    return features(key, projection, "features in each expert")


def shared_experts(key: str, times: str = "") -> Part:
    """Experts that see every token; none where ``times``, the key of their number, has nothing."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        if not times or numbers.get(times):
            yield from features(key, "down_proj", "features in its shared expert", times)(numbers)

    return part


def must_have(key: str, part: Part) -> Part:
    """``part``, which mlx-lm shares only if the config has something under ``key``."""

    def sure(numbers: Numbers) -> Iterable[Shared]:
        if not numbers.get(key):
            raise UnsaidError(key)
        return part(numbers)

    return sure


def layered(kinds: Kinds, dense: Part, *sparse: Part) -> Part:
    """``dense`` if there is a layer that is no mixture, and ``sparse`` if there is one that is."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        found = set(kinds(numbers))
        if False in found:
            yield from dense(numbers)
        if True in found:
            for each in sparse:
                yield from each(numbers)

    return part


def after_the_first(experts_key: str = "n_routed_experts", first: str = "first_k_dense_replace") -> Kinds:
    """DeepSeek's way: mixtures from layer ``first`` on, every ``moe_layer_freq``-th."""

    def kinds(numbers: Numbers) -> Iterator[bool]:
        start, step = numbers.count_or(first, 0), numbers.count_or("moe_layer_freq", 1)
        there = bool(numbers.get(experts_key))
        return (there and index >= start and index % step == 0 for index in numbers.layers())

    return kinds


def every_so_often(numbers: Numbers) -> Iterator[bool]:
    """Qwen's way: every ``decoder_sparse_step``-th layer but ``mlp_only_layers``."""
    step = numbers.count_or("decoder_sparse_step", 1)
    dense = numbers.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise UnsaidError("mlp_only_layers")
    there = bool(numbers.get("num_experts"))
    return (there and index not in dense and (index + 1) % step == 0 for index in numbers.layers())


def listed(key: str, sparse: object = True) -> Kinds:
    """A list with an entry for each layer."""

    def kinds(numbers: Numbers) -> list[bool]:
        value = numbers.get(key)
        if not isinstance(value, list):
            raise UnsaidError(key)
        return [item == sparse for item in value]

    return kinds
