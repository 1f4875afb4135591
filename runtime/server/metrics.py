"""``GET /metrics``: what Prometheus collects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runtime.cluster.answers import Outcome
    from runtime.cluster.health import Health

PATH = "/metrics"

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
_RATES = (1, 2, 5, 10, 20, 50, 100, 200)


class Metrics:
    """Counted since the session began; nothing of what was asked or answered is in it."""

    def __init__(self, health: Callable[[], Health]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Ranks(health))
        registry = self._registry
        self._requests = Counter(
            "pomona_http_requests", "HTTP requests by path and status.", ("path", "status"), registry=registry
        )
        self._prompt = Counter("pomona_prompt_tokens", "Tokens of prompts.", registry=registry)
        self._cached = Counter("pomona_cached_tokens", "Of them, those that were cached.", registry=registry)
        self._completion = Counter("pomona_completion_tokens", "Tokens of answers.", registry=registry)
        self._ttft = Histogram(
            "pomona_time_to_first_token_seconds",
            "Arrival to first token.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._rate = Histogram(
            "pomona_decode_tokens_per_second",
            "After the first token.",
            buckets=_RATES,
            registry=registry,
        )

    def asked(self, path: str, status: int) -> None:
        """A request is over; ``path`` is one of the routes, never what a client made up."""
        self._requests.labels(path, str(status)).inc()

    def answered(self, outcome: Outcome) -> None:
        """An answer is over."""
        self._prompt.inc(outcome.prompt_tokens)
        self._cached.inc(outcome.cached_tokens)
        self._completion.inc(outcome.completion_tokens)
        if outcome.completion_tokens:
            self._ttft.observe(outcome.ttft_seconds)
        if outcome.completion_tokens > 1:
            self._rate.observe(outcome.decode_tokens_per_second)

    async def handle(self, _request: web.Request) -> web.Response:
        """All of it, as text."""
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


class _Ranks(Collector):
    """What is looked at when someone asks."""

    def __init__(self, health: Callable[[], Health]) -> None:
        self._health = health

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing ahead of time, because the session is not there yet."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """As the session is now."""
        health = self._health()
        yield GaugeMetricFamily("pomona_up", "1 while the model can be asked.", value=float(health.status == "ok"))
        yield GaugeMetricFamily("pomona_active_requests", "Requests without an end.", value=health.active_requests)
        steps = CounterMetricFamily("pomona_rank_steps", "Steps of each rank.", labels=("rank", "node"))
        silence = GaugeMetricFamily(
            "pomona_rank_silent_seconds", "Since each rank's last report.", labels=("rank", "node")
        )
        for rank in health.ranks:
            steps.add_metric((str(rank.rank), rank.node), rank.steps)
            silence.add_metric((str(rank.rank), rank.node), rank.silent_seconds)
        yield steps
        yield silence
