"""Compute gold/recovery_weeks from the minutes of mirrors and consumer groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    RECOVERY_WEEKS,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.settings import make_week_calendar
from fleetgauge_pipelines.transforms.recovery_weeks import (
    FLEET,
    GROUP_COLUMNS,
    MIRROR,
    MIRROR_COLUMNS,
    SubjectWeek,
    compute_recovery_weeks,
    compute_subject_minutes,
)

#: Every minute adds rows to both tables. They hardly change a week, and reading it means reading many small
#: files, so weeks are computed less often.
_COMPUTE_EVERY = timedelta(minutes=10)
_MINUTE = timedelta(minutes=1)

#: A mirror or consumer group: its scope and its name within the scope.
Subject = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _SubjectSpan:
    """The first and the last minute of a subject."""

    first: datetime
    last: datetime


class RecoveryWeeksWriter:
    """Keeps gold/recovery_weeks in step with the minutes, if the fleet has mirrors.

    A week is computed a last time when it is due to close; minutes that arrive later do not change it.
    """

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._objectives = fleet.recovery.objectives
        self._calendar = make_week_calendar(fleet)
        self._mirrors = {
            (MIRROR, f"{mirror.source} to {mirror.destination}") for mirror in fleet.recovery.mirrors
        }
        #: The start of the first week that is not closed; None if no week is stored as closed yet.
        self._open_from: datetime | None = None
        self._closed_subjects: set[Subject] = set()
        self._versions: tuple[int | None, ...] = ()
        self._computed_at: datetime | None = None

    def open(self) -> None:
        """Read which weeks are closed, and their subjects."""
        if not self._mirrors:
            return
        closed = self._lake.table_store(RECOVERY_WEEKS).rows(pc.field("closed"), ("week", "scope", "subject"))
        self._closed_subjects = _subjects(closed)
        if closed:
            self._open_from = self._calendar.week_of(max(row["week"] for row in closed)).end

    def compute_weeks(self, clock: datetime) -> int:
        """Compute every week that is not closed, if there are new minutes or a week is due to close.

        Only minutes that have ended by ``clock`` count. Return how many rows changed.
        """
        if not self._mirrors or not (self._is_due_to_close(clock) or self._is_interval_over(clock)):
            return 0
        self._computed_at = clock
        # Read before the minutes, so that minutes that are added meanwhile are noticed next time.
        versions = tuple(self._lake.table_store(table).version for table in (MIRROR_MINUTES, GROUP_MINUTES))
        if None in versions or (versions == self._versions and not self._is_due_to_close(clock)):
            return 0
        changed = self._compute(clock)
        self._versions = versions
        return changed

    def _is_due_to_close(self, clock: datetime) -> bool:
        return self._open_from is not None and clock >= self._calendar.week_at(self._open_from).closes_at

    def _is_interval_over(self, clock: datetime) -> bool:
        return self._computed_at is None or clock - self._computed_at >= _COMPUTE_EVERY

    def _compute(self, clock: datetime) -> int:
        until = clock.replace(second=0, microsecond=0)
        minutes = compute_subject_minutes(
            self._read_minutes(MIRROR_MINUTES, MIRROR_COLUMNS, until),
            self._read_minutes(GROUP_MINUTES, GROUP_COLUMNS, until),
        )
        spans_by_subject = _find_subject_spans(minutes)
        open_from = self._open_from or min((span.first for span in spans_by_subject.values()), default=until)
        if open_from >= until:
            return 0
        spans = self._calendar.weeks_between(open_from, until - _MINUTE)
        subjects = [
            week for span in spans for week in self._list_subject_weeks(span, spans_by_subject, clock)
        ]
        weeks = self._lake.table_store(RECOVERY_WEEKS)
        dates = [span.week for span in spans]
        stored = weeks.rows(pc.field("week").isin(dates))
        wanted = compute_recovery_weeks(minutes, subjects, self._objectives)
        changed = weeks.replace(wanted, stored, {"week": dates})
        self._closed_subjects |= _subjects([row for row in wanted if row["closed"]])
        self._open_from = next((span.start for span in spans if clock < span.closes_at), spans[-1].end)
        return changed

    def _read_minutes(self, table: Table, columns: Sequence[str], until: datetime) -> pa.Table:
        """Return the minutes before ``until`` of the weeks that are not closed."""
        where, days = pc.field("minute") < until, None
        if self._open_from is not None:
            where &= pc.field("minute") >= self._open_from
            days = list_utc_days([(self._open_from, until)])
        return self._lake.list_files(table, days).read(columns, where)

    def _list_subject_weeks(
        self, week: WeekSpan, spans: Mapping[Subject, _SubjectSpan], clock: datetime
    ) -> Iterator[SubjectWeek]:
        """Yield each subject that is expected in the week.

        The fleet's mirrors are expected from their first minute on. A group is expected if it has a minute in
        the week or later, because a group without minutes may have been deleted.
        """
        until = clock.replace(second=0, microsecond=0)
        for subject in sorted(self._closed_subjects | spans.keys()):
            span = spans.get(subject)
            since = week.start if subject in self._closed_subjects or span is None else span.first
            starts, ends = max(week.start, since), min(week.end, until)
            is_expected = subject in self._mirrors or (span is not None and span.last >= week.start)
            if starts < ends and is_expected:
                yield SubjectWeek(*subject, week.week, starts, ends, clock >= week.closes_at)


def _subjects(rows: Sequence[Mapping[str, Any]]) -> set[Subject]:
    return {(row["scope"], row["subject"]) for row in rows if row["scope"] != FLEET}


def _find_subject_spans(minutes: pa.Table) -> dict[Subject, _SubjectSpan]:
    bounds = minutes.group_by(["scope", "subject"]).aggregate([("minute", "min"), ("minute", "max")])
    return {
        (row["scope"], row["subject"]): _SubjectSpan(row["minute_min"], row["minute_max"])
        for row in bounds.to_pylist()
    }
