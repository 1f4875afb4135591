"""Having nodes fetch a model, or each its parts of it, because a person wants that before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.models import ModelProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from discovery.home import Home
    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.model_names import NamedModel
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part

    OnFetch = Callable[[KnownNode, str, FetchProgress | None], None]


class NodesFetch:
    """One fetch of one model. Cancelling :meth:`run` pauses it, and another one goes on."""

    def __init__(
        self,
        home: Home,
        found: NamedModel,
        parts: Mapping[str, Part],
        wanted: Mapping[str, Sequence[str]],
        in_reach: Sequence[KnownNode],
        on_fetch: OnFetch,
        *,
        with_text: bool = False,
    ) -> None:
        """``wanted`` names the parts for each node's id; all nodes ``in_reach`` may give something.

        ``with_text``: the nodes keep the tokenizer too, so that what they have can be run from there.
        """
        self._home = home
        known = reachable(in_reach)
        self._nodes = [node for node in known if wanted.get(node.resources.node_id)]
        self._others = [node for node in known if not wanted.get(node.resources.node_id)]
        self._wanted = {node.resources.node_id: wanted[node.resources.node_id] for node in self._nodes}
        self._text_on = tuple(self._wanted) if with_text else ()
        manifest = found.manifest
        order = ModelOrder(manifest.name, manifest.repository, manifest.revision, str(found.folder or ""))
        self._provider = ModelProvider(home, order, parts, on_fetch)

    async def preview(self) -> list[str]:
        """What would come from where, for each node that lacks something. Raises :class:`PomonaError`."""
        await introduce(self._home, self._nodes)
        return await self._provider.preview(self._nodes, self._wanted, self._others)

    async def run(self) -> dict[str, str]:
        """Fetch; returns the model's folder on each node. Raises :class:`PomonaError`; what has come stays."""
        await introduce(self._home, self._nodes)
        return await self._provider.provide(self._nodes, self._wanted, self._text_on, self._others)
