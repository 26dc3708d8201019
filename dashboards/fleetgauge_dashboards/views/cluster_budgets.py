"""Sort a week's clusters by their error budgets, and compute how fast each burns its budgets now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from fleetgauge_core.fleet import BURN_WINDOWS, BurnWindow
from fleetgauge_core.slo.burn import (
    LATENCY_OBJECTIVE,
    BurnAlert,
    BurnAlertState,
    BurnHistory,
    BurnMinute,
    ServiceLevelIndicator,
)
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.freshness import STALE_AFTER

Row = Mapping[str, Any]

ONE_HOUR_MIN, SIX_HOURS_MIN = 60, 360
#: The longest burn window of any alert set, in minutes.
MAX_SPAN = max(window.long_minutes for windows in BURN_WINDOWS.values() for window in windows)


@dataclass(frozen=True, slots=True)
class BurnStatus:
    """A cluster's burn rates and burn alerts.

    A burn rate of 1 spends the budget exactly by the end of the week; None where nothing was measured. Alerts
    are named by indicator, severity and window.
    """

    latency_burn_1h: float | None
    latency_burn_6h: float | None
    availability_burn_1h: float | None
    availability_burn_6h: float | None
    alerts_firing: tuple[str, ...]
    alerts_frozen: tuple[str, ...]


def select_latest_revisions(rows: Iterable[Row], week: date, key: Sequence[str]) -> list[Row]:
    """Return the week's rows, for each ``key`` the row of the highest revision."""
    of_week = sorted((row for row in rows if row["week"] == week), key=lambda row: int(row["revision"]))
    return list({tuple(row[name] for name in key): row for row in of_week}.values())


def sort_clusters_worst_first(clusters: Iterable[Row]) -> list[Row]:
    """Return the clusters sorted by their smaller budget share left, then by p99 with failures."""
    return sorted(
        clusters,
        key=lambda row: (
            smallest_budget_share_left(row),
            -(row["latency_p99_censored_us"] or 0),
            row["cluster_id"],
        ),
    )


def smallest_budget_share_left(row: Row) -> float:
    """Return the smaller share left of the latency and availability budgets; 1.0 without budgets."""
    budgets = (
        (row["latency_budget_left_minutes"], row["latency_budget_minutes"]),
        (availability_left_minutes(row), row["availability_budget_minutes"]),
    )
    return min((left / budget for left, budget in budgets if left is not None and budget), default=1.0)


def availability_left_minutes(row: Row) -> float | None:
    """Return the minutes left of the availability budget; None where either number is unknown."""
    budget, spent = row["availability_budget_minutes"], row["availability_spent_minutes"]
    return None if budget is None or spent is None else budget - spent


def compute_burns(
    minutes: pa.Table, clusters: Iterable[Row], now: datetime, windows: Sequence[BurnWindow]
) -> dict[str, BurnStatus]:
    """Return each cluster's burn status at the end of its data, or at ``now`` where its data is stale."""
    minutes_by_cluster = _by_cluster(minutes)
    burns = {}
    for week in clusters:
        rows = [
            _burn_minute(row, week["latency_objective_us"])
            for row in minutes_by_cluster.get(week["cluster_id"], ())
        ]
        if rows and now - (rows[-1].minute + MINUTE) > STALE_AFTER:
            rows += _unmeasured_minutes(rows[-1], now)
        burns[week["cluster_id"]] = _burn(rows, now, week["availability_objective"], windows)
    return burns


def _by_cluster(minutes: pa.Table) -> dict[str, list[Row]]:
    by_cluster: dict[str, list[Row]] = {}
    for row in minutes.sort_by("minute").to_pylist():
        by_cluster.setdefault(row["cluster_id"], []).append(row)
    return by_cluster


def _burn(
    rows: list[BurnMinute], now: datetime, objective: float, windows: Sequence[BurnWindow]
) -> BurnStatus:
    end = rows[-1].minute + MINUTE if rows else now
    history = BurnHistory(rows)

    def burn(length: int, indicator: ServiceLevelIndicator, target: float) -> float | None:
        burn_rate = history.measure_window(end, length, indicator, target).burn
        return None if burn_rate is None else float(burn_rate)

    alerts = history.evaluate_alerts(end, windows, objective)
    return BurnStatus(
        burn(ONE_HOUR_MIN, ServiceLevelIndicator.LATENCY, LATENCY_OBJECTIVE),
        burn(SIX_HOURS_MIN, ServiceLevelIndicator.LATENCY, LATENCY_OBJECTIVE),
        burn(ONE_HOUR_MIN, ServiceLevelIndicator.AVAILABILITY, objective),
        burn(SIX_HOURS_MIN, ServiceLevelIndicator.AVAILABILITY, objective),
        _alert_names(alerts, BurnAlertState.FIRING),
        _alert_names(alerts, BurnAlertState.FROZEN),
    )


def _burn_minute(row: Row, latency_objective_us: int) -> BurnMinute:
    censored = row["latency_p99_censored_us"]
    return BurnMinute(
        row["minute"].astimezone(UTC),
        censored is not None and censored > latency_objective_us,
        row["attempted"],
        row["succeeded"],
        row["brokers_expected"],
        row["brokers_measured"],
    )


def _unmeasured_minutes(last: BurnMinute, now: datetime) -> list[BurnMinute]:
    """Return the minutes since the last row, as unmeasured, as far as a burn window reaches.

    As many brokers count as expected as in the last row: a silent cluster must not look healthy.
    """
    minutes_missing = (now - last.minute) // MINUTE - 1
    offsets = range(max(1, minutes_missing - MAX_SPAN + 1), minutes_missing + 1)
    return [BurnMinute(last.minute + n * MINUTE, False, 0, 0, last.expected, 0) for n in offsets]


def _alert_names(alerts: Iterable[BurnAlert], state: BurnAlertState) -> tuple[str, ...]:
    return tuple(
        f"{alert.indicator} {alert.window.severity} {alert.window.name}"
        for alert in alerts
        if alert.state is state
    )
