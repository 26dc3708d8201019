"""Minutes of recovery to gold/recovery_weeks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    RECOVERY_WEEKS,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.small_frames import dataframe, utc
from fleetgauge_pipelines.jobs.settings import calendar
from fleetgauge_pipelines.transforms.recovery_weeks import (
    FLEET,
    MIRROR,
    SUBJECTS_DDL,
    recovery_weeks,
    subject_minutes,
    subject_weeks,
)

#: Every minute adds rows to both tables; a week hardly moves by them, and is read in many small files.
_EVERY = timedelta(minutes=10)
_MINUTE = timedelta(minutes=1)

#: Its scope, and what it is called there.
Subject = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The first and the last minute of a subject."""

    first: datetime
    last: datetime


class RecoveryWeeks:
    """Brings weeks to what the minutes say, where the fleet has mirrors; else it does nothing.

    A week is computed once more when it is due to close, and then stays as it is, whatever comes late.
    """

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._objectives = fleet.recovery.objectives
        self._calendar = calendar(fleet)
        self._mirrors = {(MIRROR, f"{one.source} to {one.destination}") for one in fleet.recovery.mirrors}
        #: Where the first week begins that is not closed; None while it is not known which one that is.
        self._open_from: datetime | None = None
        self._of_closed: set[Subject] = set()
        self._versions: tuple[int | None, ...] = ()
        self._looked_at: datetime | None = None

    def open(self) -> None:
        """Learn which weeks are closed, and of whom they tell."""
        if not self._mirrors:
            return
        closed = self._lake.small(RECOVERY_WEEKS).rows(pc.field("closed"), ("week", "scope", "subject"))
        self._of_closed = _subjects(closed)
        if closed:
            self._open_from = self._calendar.of_day(max(row["week"] for row in closed)).end

    def compute_weeks(self, clock: datetime) -> int:
        """Every week that is not closed, where there are new minutes or one is due to close.

        As the minutes are that were over by the clock. Returns how many rows changed.
        """
        if not self._mirrors or not (self._is_due(clock) or self._is_long_ago(clock)):
            return 0
        self._looked_at = clock
        # Before the minutes are read: what is added meanwhile is seen the next time.
        versions = tuple(self._lake.small(table).version for table in (MIRROR_MINUTES, GROUP_MINUTES))
        if None in versions or (versions == self._versions and not self._is_due(clock)):
            return 0
        changed = self._compute(clock)
        self._versions = versions
        return changed

    def _is_due(self, clock: datetime) -> bool:
        return self._open_from is not None and clock >= self._calendar.of(self._open_from).closes_at

    def _is_long_ago(self, clock: datetime) -> bool:
        return self._looked_at is None or clock - self._looked_at >= _EVERY

    def _compute(self, clock: datetime) -> int:
        until = clock.replace(second=0, microsecond=0)
        minutes = settle(
            subject_minutes(*(self._minutes(one, until) for one in (MIRROR_MINUTES, GROUP_MINUTES)))
        )
        seen = _seen(minutes)
        open_from = self._open_from or min((one.first for one in seen.values()), default=until)
        if open_from >= until:
            return 0
        spans = self._calendar.between(open_from, until - _MINUTE)
        rows = [row for span in spans for row in self._rows_of(span, seen, clock)]
        weeks = self._lake.small(RECOVERY_WEEKS)
        stored = weeks.rows(pc.field("week").isin([span.week for span in spans]))
        wanted = self._wanted(minutes, rows)
        changed = weeks.replace(wanted, stored)
        self._of_closed |= _subjects([row for row in wanted if row["closed"]])
        self._open_from = next((span.start for span in spans if clock < span.closes_at), spans[-1].end)
        return changed

    def _minutes(self, table: Table, until: datetime) -> DataFrame:
        """Of the weeks that are not closed."""
        rows = self._lake.read(table).where(F.col("minute") < F.lit(until))
        if self._open_from is None:
            return rows
        days = F.col("day") >= F.lit(self._open_from.date())
        return rows.where(days & (F.col("minute") >= F.lit(self._open_from)))

    def _rows_of(
        self, span: WeekSpan, seen: Mapping[Subject, _Seen], clock: datetime
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of SUBJECTS_DDL: who had a minute in the week, or before it and after it.

        And the fleet's mirrors from their first minute on; a group that fell silent may be gone for good.
        """
        for subject in sorted(self._of_closed | seen.keys()):
            found = seen.get(subject)
            since = span.start if subject in self._of_closed or found is None else found.first
            starts, ends = max(span.start, since), min(span.end, clock.replace(second=0, microsecond=0))
            goes_on = subject in self._mirrors or (found is not None and found.last >= span.start)
            if starts < ends and goes_on:
                yield (*subject, span.week, starts, ends, clock >= span.closes_at)

    def _wanted(self, minutes: DataFrame, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        if not rows:
            return []
        subjects = dataframe(self._spark, rows, SUBJECTS_DDL)
        weeks = settle(subject_weeks(minutes, subjects, self._objectives))
        return [row.asDict() for row in recovery_weeks(weeks).collect()]


def _subjects(rows: Sequence[Mapping[str, Any]]) -> set[Subject]:
    return {(row["scope"], row["subject"]) for row in rows if row["scope"] != FLEET}


def _seen(minutes: DataFrame) -> dict[Subject, _Seen]:
    found = minutes.groupBy("scope", "subject").agg(
        F.min("minute").alias("first"), F.max("minute").alias("last")
    )
    return {
        (row["scope"], row["subject"]): _Seen(utc(row["first"]), utc(row["last"])) for row in found.collect()
    }
