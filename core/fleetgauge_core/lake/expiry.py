"""Retention: which days of a lake may be removed."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import pyarrow.compute as pc

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.slo.retention import MINUTE_RETENTION, SAMPLE_RETENTION, first_kept_day
from fleetgauge_core.slo.revisions import OPEN
from fleetgauge_core.slo.weeks import WEEK_CLOSING_DELAY, WeekCalendar
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    PROBE_MINUTES,
    QUALITY,
    Table,
)


@dataclass(frozen=True, slots=True)
class RetentionPeriods:
    """How long samples (bronze) and minutes (silver) are kept; minutes at least as long as samples."""

    samples: timedelta = SAMPLE_RETENTION
    minutes: timedelta = MINUTE_RETENTION


def first_retained_days(
    lake: str, calendar: WeekCalendar, clusters: Collection[str], clock: datetime, retention: RetentionPeriods
) -> dict[Table, date]:
    """Return the first day to keep of each table that expires; all earlier days may be removed.

    Days of a week that is not closed, or that a quality check holds back, are kept.

    Raises: one of DELTA_ERRORS if the lake cannot be read.
    """
    weeks = _open_weeks(lake, clusters) | _weeks_held_back(lake)
    unfinished = [calendar.week_at(clock - WEEK_CLOSING_DELAY), *(calendar.week_of(week) for week in weeks)]
    samples, minutes = (
        first_kept_day(clock, kept, unfinished) for kept in (retention.samples, retention.minutes)
    )
    return {PROBE_MINUTES: samples, BROKER_MINUTES: minutes, CLUSTER_MINUTES: minutes}


def _open_weeks(lake: str, clusters: Collection[str]) -> set[date]:
    """Return the weeks that are not closed for some cluster of the fleet, regardless of their age."""
    delta = open_table(lake, CLUSTER_WEEKS)
    if delta is None:
        return set()
    rows = delta.to_pyarrow_table(columns=["cluster_id", "week", "revision"])
    latest = rows.group_by(["cluster_id", "week"]).aggregate([("revision", "max")]).to_pylist()
    return {row["week"] for row in latest if row["revision_max"] == OPEN and row["cluster_id"] in clusters}


def _weeks_held_back(lake: str) -> set[date]:
    """Return the weeks that currently fail a quality check."""
    delta = open_table(lake, QUALITY)
    if delta is None or "week" not in {field.name for field in delta.schema().fields}:
        return set()
    has_failed = pc.field("week").is_valid() & ~pc.field("success")
    rows = delta.to_pyarrow_dataset().to_table(columns=["week"], filter=has_failed)
    return set(rows["week"].to_pylist())
