"""The model of a session on its nodes: each has what its layers need before a pipeline is built."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.meeting import reachable
from runtime.cluster.messages import ModelFetch
from runtime.cluster.model_shares import wanted_by
from runtime.cluster.models import ModelProvider
from runtime.models.manifest import manifest_of
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from discovery.home import Home
    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.nodes import KnownNode
    from runtime.models.manifest import Manifest
    from runtime.planning.values import Plan


class ModelSupply:
    """Supplies the model in ``folder``. ``folder_on`` are the nodes that may use it in place, None all that see it."""

    def __init__(
        self, home: Home, folder: str, folder_on: Sequence[str] | None, publish: Callable[[ModelFetch], None]
    ) -> None:
        self._home = home
        self._folder = folder
        self._folder_on = folder_on
        self._publish = publish
        self._manifest: Manifest | None = None

    @property
    def repository(self) -> str:
        """The model's name on the hub; empty if it has none, or before it was looked at."""
        return self._manifest.repository if self._manifest is not None else ""

    async def provide(self, plan: Plan, nodes: Sequence[KnownNode], known: Iterable[KnownNode]) -> dict[str, str]:
        """Have every node of the plan get what its layers need; returns the model's folder on each.

        What none of them has may come from others that are ``known``. Raises :class:`PomonaError`.
        """
        if self._manifest is None:
            self._manifest = await asyncio.to_thread(manifest_of, Path(self._folder))
        manifest = self._manifest
        parts = await asyncio.to_thread(model_parts, manifest)
        order = ModelOrder(manifest.name, manifest.repository, manifest.revision, self._folder)
        provider = ModelProvider(self._home, order, parts, self._on_fetch, folder_on=self._folder_on)
        planned = {node.resources.node_id for node in nodes}
        others = reachable([*nodes, *(node for node in known if node.resources.node_id not in planned)])
        return await provider.provide(nodes, wanted_by(plan, parts), others=others[len(nodes) :])

    def _on_fetch(self, node: KnownNode, words: str, progress: FetchProgress | None) -> None:
        done, total = (progress.done_bytes, progress.total_bytes) if progress else (0, 0)
        rate, left = (progress.bytes_per_second, progress.seconds_left) if progress else (0.0, None)
        resources = node.resources
        self._publish(ModelFetch(resources.node_id, resources.name, words, done, total, rate, left))
