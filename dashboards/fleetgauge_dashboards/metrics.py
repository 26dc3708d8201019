"""What the pages' /metrics tells. Names and labels are a promise: docs/operations.md lists them.

Answers are counted by each worker; what lakes hold is looked up by the one that is asked.
"""

import math
import os
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.single_flight import Patience, SlowError

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class DashMetrics:
    """Counts answers as they are given."""

    def __init__(self, lakes: Mapping[str, Lake], patience: Patience) -> None:
        self._live = Vitals("dash", math.inf).registry
        self._live.register(_Lakes(lakes, patience))
        self._own = CollectorRegistry()
        self._answers = Histogram(
            "fleetgauge_dash_answer_duration_seconds",
            "Answers to open pages, also those that found nothing new.",
            ("page",),
            buckets=_SECONDS,
            registry=self._own,
        )

    def answered(self, page: str, seconds: float) -> None:
        self._answers.labels(page).observe(seconds)

    def text(self) -> bytes:
        """Of all workers."""
        return generate_latest(self._live) + generate_latest(self._counted())

    def _counted(self) -> CollectorRegistry:
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self._own
        every = CollectorRegistry()
        MultiProcessCollector(every)
        return every


class _Lakes(Collector):
    """Nothing of a lake that does not answer in time."""

    def __init__(self, lakes: Mapping[str, Lake], patience: Patience) -> None:
        self._lakes = lakes
        self._patience = patience

    def collect(self) -> Iterable[GaugeMetricFamily]:
        try:
            return self._patience.ask("metrics", self._look)
        except SlowError:
            return ()

    def _look(self) -> Iterable[GaugeMetricFamily]:
        readable = GaugeMetricFamily(
            "fleetgauge_dash_table_readable",
            "1 while the table can be read or is not there yet, else 0.",
            labels=("fleet", "table"),
        )
        until = GaugeMetricFamily(
            "fleetgauge_dash_data_timestamp_seconds",
            "The end of the newest measured minute, NaN without one.",
            labels=("fleet",),
        )
        for fleet, lake in self._lakes.items():
            for table in lake.readable():
                readable.add_metric((fleet, table.path), float(table.error is None))
            until.add_metric((fleet,), _until(lake))
        return readable, until


def _until(lake: Lake) -> float:
    try:
        until = lake.recency().until
    except LakeError:
        return math.nan
    return math.nan if until is None else until.timestamp()
