"""What the pages' /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

import math
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Gauge, Histogram

from fleetgauge_dashboards.reader import Lake, LakeError
from fleetgauge_dashboards.reader.lake import newest_measured
from fleetgauge_dashboards.reader.table import TableReader
from fleetgauge_dashboards.views.freshness import MINUTE

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class DashMetrics:
    """Counts answers as they are given; what lakes hold is looked up when it is asked for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answers = Histogram(
            "fleetgauge_dash_answer_duration_seconds",
            "Answers to open pages, also those that found nothing new.",
            ("page",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._readable = Gauge(
            "fleetgauge_dash_table_readable",
            "1 while the table can be read or is not there yet, else 0.",
            ("fleet", "table"),
            registry=registry,
        )
        self._until = Gauge(
            "fleetgauge_dash_data_timestamp_seconds",
            "The end of the newest measured minute, NaN without one.",
            ("fleet",),
            registry=registry,
        )

    def answered(self, page: str, seconds: float) -> None:
        self._answers.labels(page).observe(seconds)

    def watch(self, lakes: Mapping[str, Lake]) -> None:
        """Look at these lakes whenever the metrics are read."""
        for fleet, lake in lakes.items():
            self._until.labels(fleet).set_function(_until(lake))
            for reader in lake.readers:
                self._readable.labels(fleet, reader.table.path).set_function(_readable(reader))


def _readable(reader: TableReader) -> Callable[[], float]:
    def readable() -> float:
        try:
            reader.version()
        except LakeError:
            return 0
        return 1

    return readable


def _until(lake: Lake) -> Callable[[], float]:
    def until() -> float:
        try:
            newest = newest_measured(lake.recent_minutes()).values()
        except LakeError:
            return math.nan
        return (max(newest) + MINUTE).timestamp() if newest else math.nan

    return until
