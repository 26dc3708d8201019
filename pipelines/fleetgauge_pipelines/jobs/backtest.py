"""Recompute the watch's burn alerts from the tables, by folding silver's minutes with the watch's own code.

The watch computes the same cluster-minutes from the same records, so the two agree, except for records that
arrived too late for the watch. Findings about brokers, whose errors do not count, are read from
ops/health_events as they were recorded at the time.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow.compute as pc
from pyspark.sql import functions as F

from fleetgauge_core.contract import HealthEvent, RecordDecodeError
from fleetgauge_core.detection import (
    LONGEST_BURN_WINDOW,
    BurnMinute,
    BurnSettings,
    Finding,
    FleetBurnState,
    exclude_paged_errors,
    fold_closed_minute,
    parse_finding,
)
from fleetgauge_core.detection.objectives import derive_burn_settings
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import CLUSTER_MINUTES, HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import to_utc

_log = logging.getLogger("fleetgauge.backtest")

#: From a minute's start until the watch closes it: the first record of the next minute is written 13 s after
#: that minute's end.
_CLOSED_AFTER = timedelta(seconds=133)
_MINUTE_COLUMNS = (
    "minute",
    "latency_p99_censored_us",
    "attempted",
    "succeeded",
    "brokers_expected",
    "brokers_measured",
)


def recompute_findings(lake: Lake, fleet: Fleet, since: datetime, until: datetime) -> tuple[Finding, ...]:
    """Return the budget findings in [since, until), oldest first, by the objectives of the fleet file."""
    settings = {cluster.id: derive_burn_settings(fleet, cluster) for cluster in fleet.clusters}
    recorded = read_recorded_findings(lake, since - LONGEST_BURN_WINDOW, until)
    minutes = (
        lake.read(CLUSTER_MINUTES)
        .where(F.col("day") >= F.lit((since - LONGEST_BURN_WINDOW).date()))
        .where((F.col("minute") >= F.lit(since - LONGEST_BURN_WINDOW)) & (F.col("minute") < F.lit(until)))
        .where(F.col("cluster_id").isin(list(settings)))
    )
    by_cluster = minutes.select("cluster_id", *_MINUTE_COLUMNS).groupBy("cluster_id")
    events = by_cluster.applyInPandas(_fold_cluster(settings, recorded), HEALTH_EVENTS.ddl)
    within = events.where(F.col("at") >= F.lit(since)).collect()
    return _parse_findings(row.asDict() | {"at": to_utc(row["at"])} for row in within)


def read_recorded_findings(lake: Lake, since: datetime, until: datetime) -> tuple[Finding, ...]:
    """Return the findings that watches recorded in [since, until), oldest first."""
    within = (pc.field("at") >= since) & (pc.field("at") < until)
    return _parse_findings(lake.table_store(HEALTH_EVENTS).rows(within))


def _parse_findings(rows: Iterable[dict[str, Any]]) -> tuple[Finding, ...]:
    findings = (finding for row in rows if (finding := _parse_row(row)))
    return tuple(sorted(findings, key=lambda finding: (finding.event.at, finding.event.event_id)))


def _parse_row(row: dict[str, Any]) -> Finding | None:
    # The watch ignores health events that it cannot parse, too.
    try:
        return parse_finding(HealthEvent(**row))
    except RecordDecodeError as error:
        _log.warning("ignored a health event that cannot be parsed: %s", error)
        return None


def _fold_cluster(
    settings: Mapping[str, BurnSettings], recorded: Sequence[Finding]
) -> Callable[[tuple[str], pd.DataFrame], pd.DataFrame]:
    """Return a function that folds one cluster's minutes to rows of ops/health_events."""

    def fold(key: tuple[str], frame: pd.DataFrame) -> pd.DataFrame:
        (cluster_id,) = key
        objectives, state, events = settings[cluster_id], FleetBurnState(), []
        # Newest first, so that the next finding in time is popped from the end.
        pending = [finding for finding in recorded if finding.subject.cluster_id == cluster_id][::-1]
        for row in frame.sort_values("minute").itertuples(index=False):
            minute = _burn_minute(row, objectives)
            while pending and pending[-1].event.at <= minute.minute + _CLOSED_AFTER:
                state = exclude_paged_errors(state, pending.pop())
            state, findings = fold_closed_minute(state, cluster_id, minute, objectives)
            events += [asdict(finding.event) for finding in findings]
        return pd.DataFrame(events, columns=list(HEALTH_EVENTS.column_names))

    return fold


def _burn_minute(row: Any, objectives: BurnSettings) -> BurnMinute:
    measured = int(row.brokers_measured)
    censored_us = row.latency_p99_censored_us
    return BurnMinute(
        minute=row.minute.to_pydatetime().replace(tzinfo=UTC),
        bad=bool(measured) and censored_us > objectives.latency_objective_us,
        attempted=int(row.attempted) if measured else 0,
        succeeded=int(row.succeeded) if measured else 0,
        expected=int(row.brokers_expected),
        measured=measured,
    )
