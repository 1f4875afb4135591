"""In groups of how many inputs mlx-lm will quantize a model, from its ``config.json``: a group is never cut. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNPROVED_MODE = "nvfp4"
"""mlx's sharded layers forget the second scale of this one."""
_GROUP_SIZE = {"mxfp4": 32, "mxfp8": 32, "awq": 128, "gptq": 128}
"""Of methods that other libraries name, unless they say."""


def quantization(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The settings by which mlx-lm (``utils.load_model``) quantizes; {} if it does not, None if they are unproved."""
    if config.get("quantize_activations"):
        return None
    settings = config.get("quantization")
    if not isinstance(settings, dict):
        inside = config.get("text_config")
        settings = config.get("quantization_config") or (isinstance(inside, dict) and inside.get("quantization_config"))
        if not isinstance(settings, dict):
            return {}
        if (method := settings.get("quant_method")) is not None:
            return _by_method(method, settings)
    modes = [its.get("mode") for its in (settings, *settings.values()) if isinstance(its, dict)]
    return None if _UNPROVED_MODE in modes else settings


def group_sizes(settings: Mapping[str, Any], projection: str) -> list[int]:
    """The sizes of groups in projections of that name: the usual one, and those that layers have of their own."""
    own = (its for path, its in settings.items() if isinstance(its, dict) and path.split(".")[-1] == projection)
    sizes = {its.get("group_size") for its in (settings, *own)}
    return sorted(size for size in sizes if isinstance(size, int) and size > 0)


def _by_method(method: object, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Other libraries' settings, as mlx-lm understands them."""
    if method == "fp8":  # powers of two over blocks stay packed, other kinds are unpacked
        return {"group_size": 32} if settings.get("scale_fmt") == "ue8m0" else {}
    if method == "compressed-tensors":
        packed = settings.get("format") in ("mxfp4-pack-quantized", "pack-quantized")
        return {"group_size": 32} if packed else None
    if isinstance(method, str) and method in _GROUP_SIZE:
        return {"group_size": settings.get("group_size", _GROUP_SIZE[method])}
    return None
