"""Which safetensors files a model folder's weights are in, and all their tensors together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from runtime.errors import PomonaError
from runtime.models.safetensors_header import MAX_HEADER_BYTES, TensorInfo, read_header, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

INDEX_NAME = "model.safetensors.index.json"
WEIGHTS_PATTERN = "model*.safetensors"
"""What mlx-lm loads (``mlx_lm.utils.load_model``)."""

WEIGHT_FILE_NAME = re.compile(r"[\w.+-]{1,80}\.safetensors", re.ASCII)
_SOME = 3


class _Index(msgspec.Struct, frozen=True):
    """The index beside a model in several files: the file of each tensor."""

    weight_map: dict[str, str]


def read_tensors(folder: Path) -> dict[str, TensorInfo]:
    """Every tensor of the model in ``folder``, from headers alone; raises what :func:`read_weight_files` does."""
    tensors: dict[str, TensorInfo] = {}
    for its in read_weight_files(folder).values():
        tensors |= its
    return tensors


def read_weight_files(folder: Path) -> dict[str, dict[str, TensorInfo]]:
    """The tensors of each weight file of the model in ``folder``, by the file's name, from headers alone.

    Raises :class:`PomonaError` if there are no weights that Pomona can read, if a file or a tensor that the index
    names is missing, or if a file is damaged.
    """
    index = _read_index(folder / INDEX_NAME)
    if index is None:
        paths = sorted(folder.glob(WEIGHTS_PATTERN))
        if not paths:
            raise _no_weights(folder)
    else:
        paths = _indexed_paths(folder, index)
    files = {path.name: read_header(path) for path in paths}
    if index is not None:
        check_index(index.weight_map, files, folder.name)
    return files


def check_index(weight_map: Mapping[str, str], files: Mapping[str, Mapping[str, TensorInfo]], name: str) -> None:
    """Raise :class:`PomonaError` if tensors that the index of the model ``name`` promises are in none of its files."""
    held = set().union(*files.values())
    if missing := [tensor for tensor in weight_map if tensor not in held]:
        raise PomonaError(
            f"The files of {name} lack {_list(missing)}, which its index promises: fetch the model again."
        )


def parse_index(text: bytes, name: str) -> dict[str, str]:
    """The file of each tensor, from the text of an index. ``name`` is the model's.

    Raises :class:`PomonaError` if it is damaged or names anything but safetensors files beside it.
    """
    try:
        weight_map = msgspec.json.decode(text, type=_Index).weight_map
    except (msgspec.DecodeError, RecursionError) as error:
        raise PomonaError(f"{INDEX_NAME} of {name} is damaged: fetch the model again.") from error
    for file_name in set(weight_map.values()):
        if not WEIGHT_FILE_NAME.fullmatch(file_name):
            raise PomonaError(
                f"{INDEX_NAME} of {name} names {shown(file_name)}, which is no safetensors file of that folder."
            )
    return weight_map


def _read_index(path: Path) -> _Index | None:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_HEADER_BYTES + 1)
        if len(text) > MAX_HEADER_BYTES:
            raise PomonaError(f"{INDEX_NAME} of {path.parent.name} is too large to be one: fetch the model again.")
        return _Index(parse_index(text, path.parent.name))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PomonaError(f"The model file {path} cannot be read ({error.strerror}).") from error


def _indexed_paths(folder: Path, index: _Index) -> list[Path]:
    names = sorted(set(index.weight_map.values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise PomonaError(
            f"{folder.name} lacks {len(missing)} of its {len(names)} model files "
            f"({_list(missing)}): fetch the model again."
        )
    return [folder / name for name in names]


def _no_weights(folder: Path) -> PomonaError:
    for pattern, kind in (("*.bin", "pickle"), ("*.pt", "pickle"), ("*.pth", "pickle"), ("*.gguf", "GGUF")):
        if next(folder.glob(pattern), None) is not None:
            return PomonaError(
                f"{folder.name} has its weights as {kind} files only, which Pomona does not load: "
                "fetch a version of the model in MLX or safetensors format."
            )
    return PomonaError(f"{folder.name} has no weights (no {WEIGHTS_PATTERN}): fetch the model again.")


def _list(names: Iterable[str]) -> str:
    names = list(names)
    rest = len(names) - _SOME
    return ", ".join(map(shown, names[:_SOME])) + (f" and {rest} more" if rest > 0 else "")
