"""Which days of a lake may go."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import pyarrow.compute as pc

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.slo.retention import MINUTES_KEPT, SAMPLES_KEPT, first_kept_day
from fleetgauge_core.slo.revisions import OPEN
from fleetgauge_core.slo.weeks import CLOSES_AFTER, WeekCalendar
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    PROBE_MINUTES,
    QUALITY,
    Table,
)


@dataclass(frozen=True, slots=True)
class Keeping:
    """For how long; minutes at least as long as the samples that they are made of."""

    samples: timedelta = SAMPLES_KEPT
    minutes: timedelta = MINUTES_KEPT


def first_kept_days(
    lake: str, calendar: WeekCalendar, clusters: Collection[str], clock: datetime, keeping: Keeping
) -> dict[Table, date]:
    """Of each table that expires the first day that stays. Raises one of store.BROKEN."""
    weeks = _open_weeks(lake, clusters) | _weeks_held_back(lake)
    unfinished = [calendar.of(clock - CLOSES_AFTER), *(calendar.of_day(week) for week in weeks)]
    samples, minutes = (
        first_kept_day(clock, kept, unfinished) for kept in (keeping.samples, keeping.minutes)
    )
    return {PROBE_MINUTES: samples, BROKER_MINUTES: minutes, CLUSTER_MINUTES: minutes}


def _open_weeks(lake: str, clusters: Collection[str]) -> set[date]:
    """Weeks that a cluster of the fleet has not closed yet, however old they are."""
    delta = open_table(lake, CLUSTER_WEEKS)
    if delta is None:
        return set()
    rows = delta.to_pyarrow_table(columns=["cluster_id", "week", "revision"])
    latest = rows.group_by(["cluster_id", "week"]).aggregate([("revision", "max")]).to_pylist()
    return {row["week"] for row in latest if row["revision_max"] == OPEN and row["cluster_id"] in clusters}


def _weeks_held_back(lake: str) -> set[date]:
    delta = open_table(lake, QUALITY)
    if delta is None or "week" not in {field.name for field in delta.schema().fields}:
        return set()
    broken = pc.field("week").is_valid() & ~pc.field("success")
    rows = delta.to_pyarrow_dataset().to_table(columns=["week"], filter=broken)
    return set(rows["week"].to_pylist())
