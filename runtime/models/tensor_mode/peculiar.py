"""Parts of single families of models, as far as no general one says them. Pure; see ``parts``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.models.tensor_mode.parts import (
    Numbers,
    Part,
    Shared,
    UnsaidError,
    UnsharedError,
    attention,
    experts,
    features,
    listed,
    mlp,
    shared_experts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def if_set(key: str, part: Part) -> Part:
    """``part``, if the config has something under ``key``."""

    def maybe(numbers: Numbers) -> Iterator[Shared]:
        if numbers.get(key):
            yield from part(numbers)

    return maybe


def gemma4_attention(numbers: Numbers) -> Iterator[Shared]:
    """Two sizes of heads, by the kind of layer; global attention may have key-value heads of its own."""
    count = numbers.count("num_attention_heads")
    yield Shared(count, "attention heads", count * numbers.count("head_dim"), "o_proj")
    yield Shared(count, "attention heads", count * numbers.count_or("global_head_dim", 1), "o_proj")
    yield Shared(numbers.count("num_key_value_heads"), "key-value heads")
    if numbers.get("attention_k_eq_v") and numbers.get("num_global_key_value_heads"):
        yield Shared(numbers.count("num_global_key_value_heads"), "key-value heads of global attention")


def sliding_heads(numbers: Numbers) -> Iterator[Shared]:
    """MiMo-V2: the heads of layers with a window."""
    count = numbers.count("swa_num_attention_heads")
    yield Shared(count, "attention heads of sliding windows", count * numbers.count("swa_v_head_dim"), "o_proj")
    yield Shared(numbers.count("swa_num_key_value_heads"), "key-value heads of sliding windows")


def other_heads(numbers: Numbers) -> Iterator[Shared]:
    """Step-3.5: the same under another name."""
    if numbers.get("attention_other_setting"):
        other = numbers.within("attention_other_setting")
        count = other.count("num_attention_heads")
        yield Shared(count, "attention heads of sliding windows", count * numbers.count("head_dim"), "o_proj")
        yield Shared(other.count("num_attention_groups"), "key-value heads of sliding windows")


def heads_by_layer(heads: str, key_value: str, output: str) -> Part:
    """Attention whose heads are listed layer by layer."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        for count in sorted(set(numbers.counts(heads))):
            yield Shared(count, "attention heads in a layer", count * numbers.count("head_dim"), output)
        for count in sorted(set(numbers.counts(key_value))):
            yield Shared(count, "key-value heads in a layer")

    return part


def laguna_attention(numbers: Numbers) -> Iterator[Shared]:
    """Query heads that may be listed layer by layer."""
    listed_heads = numbers.get("num_attention_heads_per_layer") is not None
    by_layer = numbers.counts("num_attention_heads_per_layer") if listed_heads else ()
    for count in sorted(set(by_layer)) or [numbers.count("num_attention_heads")]:
        yield Shared(count, "attention heads in a layer", count * numbers.count("head_dim"), "o_proj")
    yield Shared(numbers.count("num_key_value_heads"), "key-value heads")


def laguna_kinds(numbers: Numbers) -> list[bool]:
    """A list of kinds; all layers but the first are mixtures when there is none."""
    if numbers.get("mlp_layer_types") is None:
        return [index > 0 for index in numbers.layers()]
    return list(listed("mlp_layer_types", "sparse")(numbers))


def openelm_features(numbers: Numbers) -> Iterator[Shared]:
    """Widths that grow from layer to layer, rounded as OpenELM does."""
    width, divisor = numbers.count("model_dim"), numbers.count("ffn_dim_divisor")
    multipliers = numbers.get("ffn_multipliers")
    if not isinstance(multipliers, list) or not all(isinstance(each, int | float) for each in multipliers):
        raise UnsaidError("ffn_multipliers")
    for multiplier in sorted(set(multipliers)):
        wanted = multiplier * width
        count = max(divisor, int(wanted + divisor / 2) // divisor * divisor)
        count += divisor * (count < 0.9 * wanted)
        yield Shared(count, "MLP features in a layer", count, "proj_2")


def gpt_bigcode_attention(numbers: Numbers) -> Iterator[Shared]:
    """One key-value head for all, or one for each query head."""
    count = numbers.count("n_head")
    yield Shared(count, "attention heads", numbers.count("n_embd"), "c_proj")
    yield Shared(1 if numbers.get("multi_query") else count, "key-value heads")


def four_times(key: str, projection: str, noun: str = "MLP features") -> Part:
    """Perceptrons four times as wide as the model."""

    def part(numbers: Numbers) -> Iterator[Shared]:
        yield Shared(4 * numbers.count(key), noun, 4 * numbers.count(key), projection)

    return part


def qwen_features(numbers: Numbers) -> Iterator[Shared]:
    """The first Qwen counts gate and up together."""
    count = numbers.count("intermediate_size") // 2
    yield Shared(count, "MLP features", count, "c_proj")


def lille_features(numbers: Numbers) -> Iterator[Shared]:
    """Eight thirds of the width, in whole 256s."""
    count = 256 * round(int(8 * numbers.count("n_embd") / 3) / 256)
    yield Shared(count, "MLP features", count, "down_proj")


def qwen3_5_attention(numbers: Numbers) -> Iterator[Shared]:
    """mlx-lm repeats key-value heads when there are more ranks than heads."""
    heads = numbers.count("num_attention_heads")
    size = numbers.count_or("head_dim", 0) or numbers.count("hidden_size") // heads
    yield Shared(heads, "attention heads", heads * size, "o_proj")
    yield Shared(numbers.count("num_key_value_heads"), "key-value heads", repeats=True)


def ernie_kinds(numbers: Numbers) -> Iterator[bool]:
    """A first and a last mixture, and the steps between them."""
    start, end = numbers.get("moe_layer_start_index"), numbers.get("moe_layer_end_index")
    layers = numbers.layers()
    start = min(start) if isinstance(start, list) else start or 0
    end = max(end) if isinstance(end, list) else len(layers) - 1 if end is None else end
    step = numbers.count_or("moe_layer_interval", 1)
    return ((index + 1) % step == 0 and start <= index <= end for index in layers)


def ernie_experts(numbers: Numbers) -> Iterator[Shared]:
    """Experts whose size may be that of a dense layer."""
    key = "moe_intermediate_size" if numbers.get("moe_intermediate_size") else "intermediate_size"
    yield from experts(key)(numbers)
    if numbers.get("moe_num_shared_experts"):
        yield from shared_experts(key, "moe_num_shared_experts")(numbers)


def bailing_shared(numbers: Numbers) -> Iterator[Shared]:
    """Shared experts that can be switched off."""
    if numbers.get("num_shared_experts") and numbers.get("moe_router_enable_shared_expert"):
        own = bool(numbers.get("moe_shared_expert_intermediate_size"))
        key = "moe_shared_expert_intermediate_size" if own else "moe_intermediate_size"
        yield from shared_experts(key, "num_shared_experts")(numbers)


def interleaved(numbers: Numbers) -> Iterator[bool]:
    """Llama 4: every so many layers a mixture."""
    step = numbers.count("interleave_moe_layer_step")
    return (index % step == step - 1 for index in numbers.layers())


def enumerated(numbers: Numbers) -> Iterator[bool]:
    """Step-3.5: the mixtures as a text of indices; all layers but the first when there is none."""
    text = numbers.get("moe_layers_enum")
    chosen = {part.strip() for part in text.split(",")} if isinstance(text, str) and text.strip() else None
    return (index > 0 if chosen is None else str(index) in chosen for index in numbers.layers())


def minimax_kinds(numbers: Numbers) -> list[bool]:
    """Either of two lists; all mixtures when there is none."""
    if numbers.get("mlp_layer_types") is not None:
        return list(listed("mlp_layer_types", "sparse")(numbers))
    if numbers.get("moe_layer_freq") is not None:
        return list(listed("moe_layer_freq", 1)(numbers))
    return [True]


def index_heads(numbers: Numbers) -> Iterator[Shared]:
    """MiniMax-M3: the heads that choose what sparse attention sees, in either of two places."""
    inside = numbers.get("sparse_attention_config")
    count = inside.get("sparse_num_index_heads") if isinstance(inside, dict) else None
    if count or numbers.get("index_n_heads"):
        yield Shared(count or numbers.count("index_n_heads"), "index heads")


def output_groups(numbers: Numbers) -> Iterator[Shared]:
    """DeepSeek-V4.1: heads are projected in groups, and a rank keeps whole groups."""
    count = numbers.count("o_groups")
    yield Shared(numbers.count("num_attention_heads"), "attention heads")
    yield Shared(count, "groups of attention outputs", count * numbers.count("o_lora_rank"), "o_b_proj")


def kimi_linear_heads(numbers: Numbers) -> Iterator[Shared]:
    """Kimi's delta attention."""
    linear = numbers.within("linear_attn_config")
    count = linear.count("num_heads")
    yield Shared(count, "heads of linear attention", count * linear.count("head_dim"), "o_proj")


def granite_hybrid_parts(numbers: Numbers) -> Iterator[Shared]:
    """Granite 4, as long as all of its layers are attention."""
    if True not in listed("layer_types", "attention")(numbers) or "mamba" in numbers.get("layer_types"):
        raise UnsharedError("Mamba layers")
    yield from attention(size="")(numbers)
    if numbers.get("num_local_experts"):
        yield from experts("intermediate_size")(numbers)
        yield from features("shared_intermediate_size", "output_linear", "features in its shared expert")(numbers)
    else:
        yield from mlp()(numbers)


def dbrx_parts(numbers: Numbers) -> Iterator[Shared]:
    """DBRX, all of whose layers are alike."""
    heads, width = numbers.count("n_heads"), numbers.count("d_model")
    yield Shared(heads, "attention heads", width, "out_proj")
    yield Shared(numbers.within("attn_config").count("kv_n_heads"), "key-value heads")
    yield from experts("ffn_hidden_size", "w2")(numbers.within("ffn_config"))
