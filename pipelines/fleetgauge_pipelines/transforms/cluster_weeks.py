"""Cluster-weeks from cluster-minutes: the rule of slo.week_levels, column by column."""

from collections import Counter
from datetime import date, datetime
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fleetgauge_core.slo.causes import UNKNOWN
from fleetgauge_core.slo.levels import DEFINITION, LATENCY_BUDGET_DIVISOR
from fleetgauge_core.slo.quantile import nearest_rank
from fleetgauge_pipelines.transforms.records import to_minute, to_minutes

#: The columns of silver/cluster_minutes that weeks are computed from.
COLUMNS = (
    *("cluster_id", "minute", "latency_p99_us", "latency_p99_censored_us", "availability"),
    *("availability_pooled", "attempted", "succeeded", "brokers_expected", "brokers_measured", "cause"),
)


class WeekDefinition(NamedTuple):
    """A cluster's week to compute: its bounds in UTC, [starts, ends), and the objectives of its tier."""

    cluster_id: str
    week: date
    starts: datetime
    ends: datetime
    closed: bool
    latency_objective_us: int
    availability_objective: float


class OrderedRows:
    """Rows with a cluster and a minute, ordered by both, so that those of a week are a slice."""

    def __init__(self, rows: pa.Table) -> None:
        """Order the rows, which have cluster_id and minute."""
        self._rows = rows.sort_by([("cluster_id", "ascending"), ("minute", "ascending")]).combine_chunks()
        self._minutes = to_minutes(self._rows["minute"])
        counts = self._rows["cluster_id"].combine_chunks().value_counts()
        sizes, clusters = counts.field("counts").to_pylist(), counts.field("values").to_pylist()
        ends = list(accumulate(sizes))
        self._spans = {
            cluster: (end - size, end) for cluster, size, end in zip(clusters, sizes, ends, strict=True)
        }

    def select(self, week: WeekDefinition) -> pa.Table:
        """Return the rows of a cluster's week."""
        begin, end = self._spans.get(week.cluster_id, (0, 0))
        bounds = [to_minute(week.starts), to_minute(week.ends)]
        lo, hi = (begin + np.searchsorted(self._minutes[begin:end], bounds)).tolist()
        return self._rows.slice(lo, hi - lo)


def compute_cluster_week(minutes: pa.Table, week: WeekDefinition) -> dict[str, Any] | None:
    """Return the levels of gold/cluster_weeks, without revisions; None of a week without a minute.

    ``minutes`` are the week's rows of silver/cluster_minutes (COLUMNS), in their order.
    """
    return _compute_week(minutes, week) if minutes.num_rows else None


def _compute_week(minutes: pa.Table, week: WeekDefinition) -> dict[str, Any]:
    """Return a week's row from its minutes in order."""
    censored_us = minutes["latency_p99_censored_us"]
    bad = _with_nan(censored_us) > week.latency_objective_us
    measured, expected = _to_ints(minutes["brokers_measured"]), _to_ints(minutes["brokers_expected"])
    attempted, succeeded = (int(_to_ints(minutes[name]).sum()) for name in ("attempted", "succeeded"))
    count, bad_minutes = minutes.num_rows, int(bad.sum())
    causes = Counter(cause or UNKNOWN for cause in minutes["cause"].filter(pa.array(bad)).to_pylist())
    return {
        "cluster_id": week.cluster_id,
        "week": week.week,
        "latency_p99_us": _quantile(_present(minutes["latency_p99_us"])),
        "latency_p99_censored_us": _quantile(_present(censored_us)),
        "availability_p99": _quantile(_present(minutes["availability"]), from_low_end=True),
        "availability_ratio": succeeded / attempted if attempted else None,
        "bad_minutes": bad_minutes,
        "latency_objective_us": week.latency_objective_us,
        "latency_budget_minutes": count / LATENCY_BUDGET_DIVISOR,
        "latency_budget_left_minutes": count / LATENCY_BUDGET_DIVISOR - bad_minutes,
        "availability_objective": week.availability_objective,
        "availability_budget_minutes": (1 - week.availability_objective) * count,
        "availability_spent_minutes": _add_up(1 - _present(minutes["availability_pooled"])),
        "minutes_measured": int((measured > 0).sum()),
        "minutes_expected": count,
        "coverage": int(measured.sum()) / int(expected.sum()) if expected.any() else None,
        "closed": week.closed,
        "causes": dict(sorted(causes.items())),
        "definition": DEFINITION,
    }


def _quantile(values: NDArray[Any], from_low_end: bool = False) -> Any:
    """Return the 99th percentile, or None without a value: slo.quantile."""
    count = len(values)
    if not count:
        return None
    rank = nearest_rank(99, count)
    position = count - rank if from_low_end else rank - 1
    return np.partition(values, position)[position].item()


def _add_up(terms: NDArray[np.float64]) -> float:
    # One by one in the order of the minutes: a sum of doubles depends on the order of its terms.
    return float(np.cumsum(terms)[-1]) if len(terms) else 0.0


def _present(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.drop_null())


def _with_nan(column: pa.ChunkedArray) -> NDArray[np.float64]:
    # A latency in microseconds is far below the whole numbers that a double cannot hold.
    return np.asarray(column.cast(pa.float64()).fill_null(np.nan))


def _to_ints(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column, np.int64)
