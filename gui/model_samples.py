"""Made-up models of the real types, for pictures of the window and for its tests."""

from __future__ import annotations

from gui.formatting import GIB, MIB
from gui.models.fetches import Fetch, FetchState, NodeFetching
from runtime.agent.models.messages import HeldModel, ModelOrder
from runtime.cluster.catalogue import Catalogue, ModelPlace
from runtime.cluster.catalogue import catalogue as made_of
from runtime.models.hub.repository import FoundModel

COMMIT = "3f1d90c7e4a2b85561d0fa7e9c4b2a8817d6e530"


def held(name: str, owner: str, layers: int, held_layers: int, whole_bytes: int, **more: object) -> HeldModel:
    """A model as one node has it, its bytes in proportion."""
    known: dict[str, object] = {
        "is_ours": True,
        "quantization": "4 bits",
        "context_tokens": 32768,
        "pipeline_refusal": "",
        "tensor_sizes": (2, 4),
        "tensor_refusal": "",
        **more,
    }
    return HeldModel(
        name,
        f"{owner}/{name}" if owner else "",
        COMMIT,
        layers,
        held_layers,
        whole_bytes * held_layers // layers,
        weight_bytes=whole_bytes,
        **known,  # type: ignore[arg-type]  # fields by name
    )


def deepseek(held_layers: int) -> HeldModel:
    """A large one."""
    return held("DeepSeek-V3-4bit", "mlx-community", 61, held_layers, 314 * GIB, context_tokens=163840)


def qwen(held_layers: int, *, is_ours: bool = True) -> HeldModel:
    """One that fits on a Mac, with a long name."""
    name = "Qwen3-30B-A3B-Instruct-2507-MLX-4bit"
    return held(name, "lmstudio-community", 48, held_layers, 16 * GIB, context_tokens=262144, is_ours=is_ours)


def smol() -> HeldModel:
    """The demo's, in a folder."""
    return held(
        "SmolLM2-135M-Instruct",
        "",
        30,
        30,
        257 * MIB,
        quantization="float16",
        context_tokens=8192,
        is_ours=False,
        tensor_sizes=(3,),
    )


def places() -> tuple[ModelPlace, ...]:
    """Four Macs, as in :func:`gui.samples.macs`."""
    return (
        ModelPlace("Studio Ultra", "studio-ultra", (deepseek(32), qwen(48)), 412 * GIB),
        ModelPlace("Studio Max", "studio-max", (deepseek(19),), 233 * GIB),
        ModelPlace("MacBook Pro", "macbook-pro", (qwen(48, is_ours=False), smol()), 96 * GIB),
        ModelPlace("Mac mini", "mac-mini", (), 148 * GIB),
    )


def catalogue(favourites: tuple[str, ...] = ("mlx-community/DeepSeek-V3-4bit",)) -> Catalogue:
    """Three models on four Macs."""
    return made_of(places(), favourites)


def order_of(model: HeldModel) -> ModelOrder:
    """How orders name it."""
    return ModelOrder(model.name, model.repository, model.revision)


def fetching(state: FetchState = FetchState.RUNNING, trouble: str = "") -> Fetch:
    """Two nodes that get their layers."""
    nodes = (
        NodeFetching(
            "macbook-pro",
            "MacBook Pro",
            "Has 0 of 6 layers; 32.1 GB from Studio Ultra by Thunderbolt, about 29 s",
            19 * GIB,
            32 * GIB,
            1.1 * GIB,
            11.8,
        ),
        NodeFetching(
            "mac-mini",
            "Mac mini",
            "Has 0 of 4 layers; 21.4 GB from the hub",
            2 * GIB,
            21 * GIB,
            0.11 * GIB,
            173.0,
        ),
    )
    return Fetch("split", order_of(deepseek(0)), "For the split 32 | 19 | 6 | 4", nodes, state, trouble, for_split=True)


def found() -> tuple[FoundModel, ...]:
    """What the hub says to a search."""
    return (
        FoundModel("mlx-community/Qwen3-30B-A3B-4bit", 48211, 93),
        FoundModel("mlx-community/Qwen3-235B-A22B-4bit", 12780, 41),
        FoundModel("mlx-community/gemma-3-27b-it-qat-4bit", 9133, 28, gated=True),
        FoundModel("somebody/Qwen3-4B-with-a-name-that-does-not-end-and-goes-on-4bit", 17),
    )
