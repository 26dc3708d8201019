"""What the watch would have said of budgets, from the tables: silver's minutes through the watch's own fold.

Silver's cluster-minutes are what the watch makes of the same records, so the two agree, but for records that
came too late for the watch. What explains losses is taken from ops/health_events, as it was found then.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow.compute as pc
from pyspark.sql import functions as F

from fleetgauge_core.contract import ContractError, HealthEvent
from fleetgauge_core.detection import (
    REMEMBERED,
    Budgets,
    BurnMinute,
    Finding,
    Goal,
    close,
    explain,
    recalled,
)
from fleetgauge_core.detection.goals import goal_of
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import CLUSTER_MINUTES, HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import utc

_log = logging.getLogger("fleetgauge.backtest")

#: A minute is closed by the first record of the next, which is written 13 s after that one's end.
_KNOWN_AFTER = timedelta(seconds=133)
_MINUTE_COLUMNS = (
    "minute",
    "latency_p99_censored_us",
    "attempted",
    "succeeded",
    "brokers_expected",
    "brokers_measured",
)


def findings_now(lake: Lake, fleet: Fleet, since: datetime, until: datetime) -> tuple[Finding, ...]:
    """What would be found of budgets in [since, until), in order, by what the fleet file promises."""
    goals = {one.id: goal_of(fleet, one) for one in fleet.clusters}
    said = findings_then(lake, since - REMEMBERED, until)
    minutes = (
        lake.read(CLUSTER_MINUTES)
        .where(F.col("day") >= F.lit((since - REMEMBERED).date()))
        .where((F.col("minute") >= F.lit(since - REMEMBERED)) & (F.col("minute") < F.lit(until)))
        .where(F.col("cluster_id").isin(list(goals)))
    )
    by_cluster = minutes.select("cluster_id", *_MINUTE_COLUMNS).groupBy("cluster_id")
    events = by_cluster.applyInPandas(_folded(goals, said), HEALTH_EVENTS.ddl)
    within = events.where(F.col("at") >= F.lit(since)).collect()
    return _findings(row.asDict() | {"at": utc(row["at"])} for row in within)


def findings_then(lake: Lake, since: datetime, until: datetime) -> tuple[Finding, ...]:
    """What watches found in [since, until), in order."""
    within = (pc.field("at") >= since) & (pc.field("at") < until)
    return _findings(lake.small(HEALTH_EVENTS).rows(within))


def _findings(rows: Iterable[dict[str, Any]]) -> tuple[Finding, ...]:
    found = (one for row in rows if (one := _finding_in(row)))
    return tuple(sorted(found, key=lambda one: (one.event.at, one.event.event_id)))


def _finding_in(row: dict[str, Any]) -> Finding | None:
    """None for what a watch passes over as well."""
    try:
        return recalled(HealthEvent(**row))
    except ContractError as error:
        _log.warning("a health event was passed over: %s", error)
        return None


def _folded(
    goals: Mapping[str, Goal], said: Sequence[Finding]
) -> Callable[[tuple[str], pd.DataFrame], pd.DataFrame]:
    """Of one cluster's minutes."""

    def fold(key: tuple[str], frame: pd.DataFrame) -> pd.DataFrame:
        (cluster_id,) = key
        goal, budgets, events = goals[cluster_id], Budgets(), []
        ahead = [one for one in said if one.subject.cluster_id == cluster_id][::-1]
        for row in frame.sort_values("minute").itertuples(index=False):
            minute = _burn_minute(row, goal)
            while ahead and ahead[-1].event.at <= minute.minute + _KNOWN_AFTER:
                budgets = explain(budgets, ahead.pop())
            budgets, found = close(budgets, cluster_id, minute, goal)
            events += [asdict(one.event) for one in found]
        return pd.DataFrame(events, columns=list(HEALTH_EVENTS.names))

    return fold


def _burn_minute(row: Any, goal: Goal) -> BurnMinute:
    measured = int(row.brokers_measured)
    censored_us = row.latency_p99_censored_us
    return BurnMinute(
        minute=row.minute.to_pydatetime().replace(tzinfo=UTC),
        bad=bool(measured) and censored_us > goal.latency_us,
        attempted=int(row.attempted) if measured else 0,
        succeeded=int(row.succeeded) if measured else 0,
        expected=int(row.brokers_expected),
        measured=measured,
    )
