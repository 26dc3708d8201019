"""Assess until when `recover run` has reported on mirrors, groups and producers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.freshness import STALE_AFTER, DataAge, classify_age

#: Without a fleet file, mirrors and groups observed this long before the newest minute still count.
DISCOVERY_WINDOW = timedelta(hours=1)

_LAST = pc.ScalarAggregateOptions(skip_nulls=False)


@dataclass(frozen=True, slots=True)
class RecoveryFreshness:
    """The end of the newest minute of recovery data, and its age; None while there is none."""

    until: datetime | None
    age: timedelta | None
    state: DataAge

    @property
    def is_now(self) -> bool:
        """Return whether the data describes the present."""
        return self.state is DataAge.FRESH


def assess_freshness_of_tables(minutes: Sequence[pa.Table], now: datetime) -> RecoveryFreshness:
    """Return the freshness of the newest minute in any of the tables."""
    newest = [at for at in (newest_minute(rows) for rows in minutes) if at is not None]
    return assess_freshness_at(max(newest) + MINUTE if newest else None, now)


def assess_freshness_at(until: datetime | None, now: datetime) -> RecoveryFreshness:
    """Return the freshness of data that ends at ``until``."""
    if until is None:
        return RecoveryFreshness(None, None, DataAge.NONE)
    age = max(now - until, timedelta(0))
    return RecoveryFreshness(until, age, classify_age(age))


def newest_minute(rows: pa.Table) -> datetime | None:
    """Return the newest minute of the rows; None without rows."""
    return _utc(pc.max(rows["minute"]).as_py())


def oldest_minute(rows: pa.Table) -> datetime | None:
    """Return the oldest minute of the rows; None without rows."""
    return _utc(pc.min(rows["minute"]).as_py())


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def select_latest_rows(rows: pa.Table, key: Sequence[str]) -> list[Row]:
    """Return the latest row of each key, sorted by key.

    Keys without a row in the last hour of data are left out.
    """
    newest = newest_minute(rows)
    if newest is None:
        return []
    recent = rows.filter(pc.greater_equal(rows["minute"], pa.scalar(newest - DISCOVERY_WINDOW)))
    values = [name for name in rows.column_names if name not in key]
    # By default "last" skips nulls, and an unknown value would be replaced by an older known one.
    aggregations: list[Any] = [(name, "last", _LAST) for name in values]
    latest = recent.sort_by("minute").group_by(list(key), use_threads=False).aggregate(aggregations)
    renamed = latest.rename_columns([name.removesuffix("_last") for name in latest.column_names])
    by_key = [(name, "ascending") for name in key]
    return [row | {"minute": row["minute"].astimezone(UTC)} for row in renamed.sort_by(by_key).to_pylist()]


def is_current(minute: datetime, now: datetime) -> bool:
    """Return whether what was observed in the minute still describes the present."""
    return now - (minute + MINUTE) <= STALE_AFTER
