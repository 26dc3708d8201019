"""Until when `recover run` has told of mirrors, groups and producers: read before what it told."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.freshness import STALE_AFTER, Age, state_of

#: Without a fleet file, whoever was told of within so long before the newest minute is still there.
LOOK_BACK = timedelta(hours=1)

_LAST = pc.ScalarAggregateOptions(skip_nulls=False)


@dataclass(frozen=True, slots=True)
class Told:
    """The end of the newest minute, and its age; None while nothing was ever told."""

    until: datetime | None
    age: timedelta | None
    state: Age

    @property
    def is_now(self) -> bool:
        return self.state is Age.FRESH


def told(minutes: Sequence[pa.Table], now: datetime) -> Told:
    """Of tables of minutes."""
    newest = [at for at in (newest_minute(one) for one in minutes) if at is not None]
    return told_until(max(newest) + MINUTE if newest else None, now)


def told_until(until: datetime | None, now: datetime) -> Told:
    if until is None:
        return Told(None, None, Age.NONE)
    age = max(now - until, timedelta(0))
    return Told(until, age, state_of(age))


def newest_minute(rows: pa.Table) -> datetime | None:
    return _utc(pc.max(rows["minute"]).as_py())


def oldest_minute(rows: pa.Table) -> datetime | None:
    return _utc(pc.min(rows["minute"]).as_py())


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


def newest_of_each(rows: pa.Table, key: Sequence[str]) -> list[Row]:
    """The last row of each, those left out that nobody told of any more."""
    newest = newest_minute(rows)
    if newest is None:
        return []
    recent = rows.filter(pc.greater_equal(rows["minute"], pa.scalar(newest - LOOK_BACK)))
    others = [name for name in rows.column_names if name not in key]
    # "last" without its option passes over nulls: what nobody knows now would be what was known before.
    last: list[Any] = [(name, "last", _LAST) for name in others]
    found = recent.sort_by("minute").group_by(list(key), use_threads=False).aggregate(last)
    named = found.rename_columns([name.removesuffix("_last") for name in found.column_names])
    order = [(name, "ascending") for name in key]
    return [row | {"minute": row["minute"].astimezone(UTC)} for row in named.sort_by(order).to_pylist()]


def was_told(minute: datetime, now: datetime) -> bool:
    """Whether what was so in that minute is so now."""
    return now - (minute + MINUTE) <= STALE_AFTER
