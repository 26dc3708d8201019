"""Prometheus metrics of the dashboards' server; docs/operations/metrics.md lists their names and labels.

Page responses are counted by each worker; gauges about the lakes are read by the worker that is scraped.
"""

import math
import os
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from fleetgauge_core.runtime.health_server import register_build_info
from fleetgauge_dashboards.reader import LakeError, LakeReader
from fleetgauge_dashboards.single_flight import ResultPendingError, SingleFlight

_DURATION_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class DashMetrics:
    """The metrics of the dashboards' server."""

    def __init__(self, lakes: Mapping[str, LakeReader], single_flight: SingleFlight) -> None:
        self._lake_registry = CollectorRegistry()
        register_build_info(self._lake_registry, "dash")
        self._lake_registry.register(_LakeCollector(lakes, single_flight))
        self._worker_registry = CollectorRegistry()
        self._durations = Histogram(
            "fleetgauge_dash_answer_duration_seconds",
            "Duration of page responses, including those without new data.",
            ("page",),
            buckets=_DURATION_BUCKETS_S,
            registry=self._worker_registry,
        )

    def observe_response(self, page: str, seconds: float) -> None:
        """Record how many seconds a response of the page took."""
        self._durations.labels(page).observe(seconds)

    def render(self) -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        return generate_latest(self._lake_registry) + generate_latest(self._merge_workers())

    def _merge_workers(self) -> CollectorRegistry:
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self._worker_registry
        merged = CollectorRegistry()
        MultiProcessCollector(merged)
        return merged


class _LakeCollector(Collector):
    """A collector of gauges about the lakes; they are absent while a lake is too slow to read."""

    def __init__(self, lakes: Mapping[str, LakeReader], single_flight: SingleFlight) -> None:
        self._lakes = lakes
        self._single_flight = single_flight

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the gauges, or none while a lake is too slow to read."""
        try:
            return self._single_flight.run("metrics", self._read_gauges)
        except ResultPendingError:
            return ()

    def _read_gauges(self) -> Iterable[GaugeMetricFamily]:
        readable = GaugeMetricFamily(
            "fleetgauge_dash_table_readable",
            "1 while the table is readable or does not exist yet, else 0.",
            labels=("fleet", "table"),
        )
        data_end = GaugeMetricFamily(
            "fleetgauge_dash_data_timestamp_seconds",
            "End of the newest measured minute, NaN without one.",
            labels=("fleet",),
        )
        for fleet, lake in self._lakes.items():
            for table in lake.table_statuses():
                readable.add_metric((fleet, table.path), float(table.error is None))
            data_end.add_metric((fleet,), _read_data_end(lake))
        return readable, data_end


def _read_data_end(lake: LakeReader) -> float:
    try:
        until = lake.recency().until
    except LakeError:
        return math.nan
    return math.nan if until is None else until.timestamp()
