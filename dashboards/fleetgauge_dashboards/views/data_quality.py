"""Summarize how far the numbers can be trusted: checks, quarantine, losses, delay and late revisions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from fleetgauge_core.slo.quantile import quantile
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.data_quality import QualityRows
from fleetgauge_dashboards.units import NO_VALUE, format_count, format_duration
from fleetgauge_dashboards.views.cluster import KeyFigure
from fleetgauge_dashboards.views.record_losses import (
    SUITE,
    RecordLoss,
    format_lost_records,
    parse_losses,
)


@dataclass(frozen=True, slots=True)
class GateSummary:
    """An expectation of a quality gate: its checks, its failures, and the value last observed."""

    suite: str
    expectation: str
    checks: int
    failed: int
    last: datetime
    holds: bool
    observed: str


@dataclass(frozen=True, slots=True)
class QuarantinedRecords:
    """Counts of quarantined records by UTC day, ascending, and reason; each tuple is parallel to ``days``."""

    days: tuple[date, ...]
    by_reason: dict[str, tuple[int, ...]]

    @property
    def total(self) -> int:
        """Return the count of all days and reasons."""
        return sum(sum(counts) for counts in self.by_reason.values())


@dataclass(frozen=True, slots=True)
class RevisedClusterWeek:
    """A cluster-week that got another revision after it closed."""

    cluster_id: str
    week: date
    revision: int
    reason: str
    computed_at: datetime | None


@dataclass(frozen=True, slots=True)
class DataQuality:
    """Everything that the data quality page shows."""

    key_figures: tuple[KeyFigure, ...]
    gates: tuple[GateSummary, ...]
    quarantined: QuarantinedRecords
    revised: tuple[RevisedClusterWeek, ...]
    losses: tuple[RecordLoss, ...]


def summarize_data_quality(rows: QualityRows, now: datetime, days: int) -> DataQuality:
    """Summarize the rows, with ``days`` days of quarantine up to ``now``.

    Failing checks and the newest revisions come first.
    """
    gates, quarantined, revised, losses = (
        _gates(rows.checks),
        _quarantined(rows.quarantined, now, days),
        _revised(rows.revised),
        parse_losses(rows.checks.to_pylist()),
    )
    figures = _key_figures(gates, quarantined, revised, losses, rows.arrived, days)
    return DataQuality(figures, gates, quarantined, revised, losses)


def _key_figures(
    gates: Sequence[GateSummary],
    quarantined: QuarantinedRecords,
    revised: Sequence[RevisedClusterWeek],
    losses: Sequence[RecordLoss],
    arrived: pa.Table,
    days: int,
) -> tuple[KeyFigure, ...]:
    failing = sum(1 for gate in gates if not gate.holds)
    lateness = _lateness(arrived)
    median, p99 = (quantile(percentile, lateness) for percentile in (50, 99))
    return (
        KeyFigure(
            "Failing checks",
            f"{failing:,} of {len(gates):,}" if gates else NO_VALUE,
            None,
            (f"expectations checked in {days} days",),
            "gates",
        ),
        KeyFigure(
            "Records quarantined",
            f"{quarantined.total:,}",
            None,
            (f"in {days} days; ops/quarantine holds each with its reason",),
            "quarantine",
        ),
        KeyFigure(
            "Records lost",
            format_lost_records(losses),
            None,
            (f"in {days} days, before the pipeline could read them",),
            "losses",
        ),
        KeyFigure(
            "Ingestion delay, p99",
            NO_VALUE if p99 is None else format_duration(timedelta(seconds=p99)),
            None,
            (
                NO_VALUE if median is None else f"median {format_duration(timedelta(seconds=median))}",
                f"over {format_count(len(lateness), 'record')} of the last hour of data",
            ),
            "lateness",
        ),
        KeyFigure(
            "Weeks revised after closing",
            f"{len({(week.cluster_id, week.week) for week in revised}):,}",
            None,
            ("cluster-weeks with revision 2 or higher",),
            "revisions",
        ),
    )


def _lateness(arrived: pa.Table) -> list[int]:
    """Return the seconds from the end of a record's minute until its ingestion, ascending."""
    rows = arrived.to_pylist()
    delays = (row["ingested_at"] - row["minute"] - MINUTE for row in rows if row["ingested_at"])
    return sorted(max(0, int(delay.total_seconds())) for delay in delays)


def _gates(checks: pa.Table) -> tuple[GateSummary, ...]:
    by_name: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in checks.sort_by("at").to_pylist():
        by_name.setdefault((row["suite"], row["expectation"]), []).append(row)
    gates = (_gate(suite, expectation, rows) for (suite, expectation), rows in by_name.items())
    return tuple(sorted(gates, key=lambda gate: (gate.holds, -gate.failed, gate.suite, gate.expectation)))


def _gate(suite: str, expectation: str, rows: Sequence[dict[str, object]]) -> GateSummary:
    last = rows[-1]
    at = last["at"]
    assert isinstance(at, datetime)
    return GateSummary(
        suite,
        expectation,
        len(rows),
        sum(1 for row in rows if not row["success"]),
        at.astimezone(UTC),
        bool(last["success"]),
        parse_losses([last])[0].detail if suite == SUITE else str(last["observed"] or ""),
    )


def _quarantined(records: pa.Table, now: datetime, days: int) -> QuarantinedRecords:
    counts = Counter(
        (row["reason"], row["ingested_at"].astimezone(UTC).date()) for row in records.to_pylist()
    )
    shown_days = tuple(now.date() - timedelta(days=back) for back in range(days, -1, -1))
    reasons = sorted({reason for reason, _ in counts})
    return QuarantinedRecords(
        shown_days, {reason: tuple(counts[reason, day] for day in shown_days) for reason in reasons}
    )


def _revised(revised_rows: pa.Table) -> tuple[RevisedClusterWeek, ...]:
    weeks = (
        RevisedClusterWeek(
            row["cluster_id"],
            row["week"],
            row["revision"],
            row["revision_reason"] or NO_VALUE,
            row["computed_at"] and row["computed_at"].astimezone(UTC),
        )
        for row in revised_rows.to_pylist()
    )
    oldest = datetime.min.replace(tzinfo=UTC)
    newest_first = sorted(weeks, key=lambda week: (week.computed_at or oldest, week.revision), reverse=True)
    return tuple(newest_first)
