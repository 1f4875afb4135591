"""What the bridge does on its event loop for pairing and checks. No Qt: each errand tells its outcome by a function."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from discovery.local_network import Verdict
    from gui.services import Machine, Trust
    from runtime.agent.trust_messages import ShownCode
    from runtime.check.result import CheckResult
    from runtime.cluster.nodes import UnpairedNode

logger = logging.getLogger(__name__)


class TrustErrands:
    """Pairing, and this machine's code."""

    def __init__(
        self,
        trust: Trust,
        on_paired: Callable[[str, str], object],
        on_code: Callable[[ShownCode | None, str], object],
    ) -> None:
        self.trust = trust
        self._on_paired = on_paired
        self._on_code = on_code

    async def pair(self, node: UnpairedNode, code: str) -> None:
        """Pair; tells the node's id and the trouble, which is empty if it worked."""
        try:
            await self.trust.pair(node, code)
        except PomonaError as error:
            logger.info("%s", error, exc_info=error)
            self._on_paired(node.node_id, str(error))
        else:
            self._on_paired(node.node_id, "")

    async def show_code(self) -> None:
        """Tells the code, or why there is none."""
        try:
            shown = await self.trust.show_code()
        except PomonaError as error:
            self._on_code(None, str(error))
        else:
            self._on_code(shown, "")

    async def hide_code(self) -> None:
        """Show none any more."""
        try:
            await self.trust.hide_code()
        except PomonaError as error:  # without an agent there is no code either
            logger.info("%s", error)


class MachineErrands:
    """What concerns this machine alone: whether its network works, and whether it is shared at login."""

    def __init__(
        self,
        machine: Machine,
        on_verdict: Callable[[Verdict], object],
        on_sharing: Callable[[bool, str, str], object],
    ) -> None:
        self._machine = machine
        self._on_verdict = on_verdict
        self._on_sharing = on_sharing

    async def check_network(self) -> None:
        """Tells the verdict, after some two seconds."""
        self._on_verdict(await asyncio.to_thread(self._machine.check_network))

    async def tell_sharing(self) -> None:
        """Tells whether it is on, why it cannot be switched, and no trouble."""
        on = await asyncio.to_thread(self._machine.shared_at_login)
        self._on_sharing(on, self._machine.why_not_shared(), "")

    async def share(self, *, on: bool) -> None:
        """Switch it; tells what then is so, and the trouble if it could not be."""
        try:
            await asyncio.to_thread(self._machine.share_at_login, on=on)
        except PomonaError as error:
            logger.info("%s", error, exc_info=error)
            self._on_sharing(not on, self._machine.why_not_shared(), str(error))
        else:
            await self.tell_sharing()


class CheckErrand:
    """At most one check of a split."""

    def __init__(self, on_done: Callable[[CheckResult | None], object]) -> None:
        self._on_done = on_done
        self._checking: asyncio.Task[CheckResult] | None = None

    async def run(self, check: Awaitable[CheckResult]) -> None:
        """Wait for it; tells None if it was cancelled. Raises what it raised."""
        result = None
        self._checking = asyncio.ensure_future(check)
        try:
            await asyncio.wait({self._checking})
            if not self._checking.cancelled():
                result = self._checking.result()
        finally:
            self._checking = None
            self._on_done(result)

    async def end(self) -> None:
        """Cancel it, if one runs."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait({self._checking})
