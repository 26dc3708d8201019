"""A week's clusters, worst first, and how fast each spends its budgets now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from fleetgauge_core.fleet import BURN_WINDOWS, BurnWindow
from fleetgauge_core.slo.burn import (
    LATENCY_OBJECTIVE,
    BurnAlert,
    BurnHistory,
    BurnMinute,
    Indicator,
    State,
)
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.freshness import STALE_AFTER

Row = Mapping[str, Any]

HOUR, SIX_HOURS = 60, 360
#: The longest window of any set, in minutes.
LONGEST = max(window.long_minutes for windows in BURN_WINDOWS.values() for window in windows)


@dataclass(frozen=True, slots=True)
class Burn:
    """Times the even pace, None where nothing was measured; alerts by indicator, severity and window."""

    latency_burn_1h: float | None
    latency_burn_6h: float | None
    availability_burn_1h: float | None
    availability_burn_6h: float | None
    alerts_firing: tuple[str, ...]
    alerts_frozen: tuple[str, ...]


def week_rows(rows: Iterable[Row], week: date, key: Sequence[str]) -> list[Row]:
    """The week's rows, each at its highest revision."""
    own = sorted((row for row in rows if row["week"] == week), key=lambda row: int(row["revision"]))
    return list({tuple(row[name] for name in key): row for row in own}.values())


def worst_first(clusters: Iterable[Row]) -> list[Row]:
    """By the share left of the budget that is nearer to its end; then by what clients felt."""
    return sorted(
        clusters,
        key=lambda row: (share_left(row), -(row["latency_p99_censored_us"] or 0), row["cluster_id"]),
    )


def share_left(row: Row) -> float:
    """Of the latency or the availability budget, whichever has less; no budget, no worry."""
    lefts = (
        (row["latency_budget_left_minutes"], row["latency_budget_minutes"]),
        (availability_left_minutes(row), row["availability_budget_minutes"]),
    )
    return min((left / budget for left, budget in lefts if left is not None and budget), default=1.0)


def availability_left_minutes(row: Row) -> float | None:
    budget, spent = row["availability_budget_minutes"], row["availability_spent_minutes"]
    return None if budget is None or spent is None else budget - spent


def burns(
    minutes: pa.Table, clusters: Iterable[Row], now: datetime, windows: Sequence[BurnWindow]
) -> dict[str, Burn]:
    """Each cluster's burn at the end of its data, or now where that is late."""
    own = _by_cluster(minutes)
    found = {}
    for week in clusters:
        rows = [_burn_minute(row, week["latency_objective_us"]) for row in own.get(week["cluster_id"], ())]
        if rows and now - (rows[-1].minute + MINUTE) > STALE_AFTER:
            rows += _silent(rows[-1], now)
        found[week["cluster_id"]] = _burn(rows, now, week["availability_objective"], windows)
    return found


def _by_cluster(minutes: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in minutes.sort_by("minute").to_pylist():
        found.setdefault(row["cluster_id"], []).append(row)
    return found


def _burn(rows: list[BurnMinute], now: datetime, objective: float, windows: Sequence[BurnWindow]) -> Burn:
    end = rows[-1].minute + MINUTE if rows else now
    history = BurnHistory(rows)

    def burn(length: int, indicator: Indicator, promised: float) -> float | None:
        found = history.window(end, length, indicator, promised).burn
        return None if found is None else float(found)

    alerts = history.alerts(end, windows, objective)
    return Burn(
        burn(HOUR, Indicator.LATENCY, LATENCY_OBJECTIVE),
        burn(SIX_HOURS, Indicator.LATENCY, LATENCY_OBJECTIVE),
        burn(HOUR, Indicator.AVAILABILITY, objective),
        burn(SIX_HOURS, Indicator.AVAILABILITY, objective),
        _named(alerts, State.FIRING),
        _named(alerts, State.FROZEN),
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


def _silent(last: BurnMinute, now: datetime) -> list[BurnMinute]:
    """The minutes since that a window reaches, expected as the last one was: silence is not health."""
    missing = (now - last.minute) // MINUTE - 1
    reached = range(max(1, missing - LONGEST + 1), missing + 1)
    return [BurnMinute(last.minute + n * MINUTE, False, 0, 0, last.expected, 0) for n in reached]


def _named(alerts: Iterable[BurnAlert], state: State) -> tuple[str, ...]:
    return tuple(
        f"{alert.indicator} {alert.window.severity} {alert.window.name}"
        for alert in alerts
        if alert.state is state
    )
