"""What the service counts, as Prometheus reads it. Knows models' tallies and requests' routes; no texts."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from eyeline.serving.models import Models

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class _Tallies(Collector):
    """The models' own counts, read when they are asked for."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        batches = CounterMetricFamily("eyeline_batches", "Batches that a model answered", labels=["model"])
        inputs = CounterMetricFamily("eyeline_inputs", "Inputs that a model answered in batches", labels=["model"])
        busy = CounterMetricFamily("eyeline_busy_seconds", "Seconds in which a model made batches", labels=["model"])
        waiting = GaugeMetricFamily("eyeline_waiting", "Inputs that wait for a model", labels=["model"])
        for served in self._models:
            batches.add_metric([served.name], served.tally.batches)
            inputs.add_metric([served.name], served.tally.inputs)
            busy.add_metric([served.name], served.tally.busy)
            waiting.add_metric([served.name], served.waiting)
        yield from (batches, inputs, busy, waiting)


class Measures:
    """Counts of one service."""

    def __init__(self, models: Models) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Tallies(models))
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "eyeline_requests", "Requests by route and status", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "eyeline_request_seconds", "Seconds from a request to its answer", ["route"], buckets=SECONDS, registry=self._registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """In Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry)
