"""How far the numbers can be trusted: gates, quarantine, lateness, and weeks that changed later."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from fleetgauge_core.slo.quantile import quantile
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.trust import Trust
from fleetgauge_dashboards.units import NOTHING, count, duration
from fleetgauge_dashboards.views.cluster import Number


@dataclass(frozen=True, slots=True)
class Gate:
    """One expectation: how often it was checked, how often it failed, and what it last said."""

    suite: str
    expectation: str
    checks: int
    failed: int
    last: datetime
    holds: bool
    observed: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Records in quarantine by UTC day (ascending) and reason; ``by_day`` is parallel to ``days``."""

    days: tuple[date, ...]
    by_reason: dict[str, tuple[int, ...]]

    @property
    def total(self) -> int:
        return sum(sum(counts) for counts in self.by_reason.values())


@dataclass(frozen=True, slots=True)
class RevisedWeek:
    """A cluster's week that got another revision after it was closed."""

    cluster_id: str
    week: date
    revision: int
    reason: str
    computed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Trusted:
    """The page of it."""

    numbers: tuple[Number, ...]
    gates: tuple[Gate, ...]
    refused: Refused
    revised: tuple[RevisedWeek, ...]


def trusted(found: Trust, now: datetime, days: int) -> Trusted:
    """Gates that do not hold come first, revisions newest first; ``days`` of quarantine up to ``now``."""
    gates, refused, revised = (
        _gates(found.checks),
        _refused(found.refused, now, days),
        _revised(found.revised),
    )
    return Trusted(_numbers(gates, refused, revised, found.arrived, days), gates, refused, revised)


def _numbers(
    gates: Sequence[Gate], refused: Refused, revised: Sequence[RevisedWeek], arrived: pa.Table, days: int
) -> tuple[Number, ...]:
    broken = sum(1 for gate in gates if not gate.holds)
    lateness = _lateness(arrived)
    median, p99 = (quantile(percentile, lateness) for percentile in (50, 99))
    return (
        Number(
            "Gates that do not hold",
            f"{broken:,} of {len(gates):,}" if gates else NOTHING,
            None,
            (f"expectations checked in {days} days",),
            "gates",
        ),
        Number(
            "Records refused",
            f"{refused.total:,}",
            None,
            (f"in {days} days; each lies in ops/quarantine with its reason",),
            "quarantine",
        ),
        Number(
            "On their way, p99",
            NOTHING if p99 is None else duration(timedelta(seconds=p99)),
            None,
            (
                NOTHING if median is None else f"median {duration(timedelta(seconds=median))}",
                f"over {count(len(lateness), 'record')} of the last hour of data",
            ),
            "lateness",
        ),
        Number(
            "Weeks revised after closing",
            f"{len({(one.cluster_id, one.week) for one in revised}):,}",
            None,
            ("cluster-weeks with a second revision or more",),
            "revisions",
        ),
    )


def _lateness(arrived: pa.Table) -> list[int]:
    """Whole seconds from a minute's end to its record's row, ascending."""
    rows = arrived.to_pylist()
    took = (row["ingested_at"] - row["minute"] - MINUTE for row in rows if row["ingested_at"])
    return sorted(max(0, int(one.total_seconds())) for one in took)


def _gates(checks: pa.Table) -> tuple[Gate, ...]:
    by_name: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in checks.sort_by("at").to_pylist():
        by_name.setdefault((row["suite"], row["expectation"]), []).append(row)
    found = (_gate(suite, expectation, rows) for (suite, expectation), rows in by_name.items())
    return tuple(sorted(found, key=lambda gate: (gate.holds, -gate.failed, gate.suite, gate.expectation)))


def _gate(suite: str, expectation: str, rows: Sequence[dict[str, object]]) -> Gate:
    last = rows[-1]
    at = last["at"]
    assert isinstance(at, datetime)
    return Gate(
        suite,
        expectation,
        len(rows),
        sum(1 for row in rows if not row["success"]),
        at.astimezone(UTC),
        bool(last["success"]),
        str(last["observed"] or ""),
    )


def _refused(found: pa.Table, now: datetime, days: int) -> Refused:
    counted = Counter((row["reason"], row["ingested_at"].astimezone(UTC).date()) for row in found.to_pylist())
    shown = tuple(now.date() - timedelta(days=back) for back in range(days, -1, -1))
    reasons = sorted({reason for reason, _ in counted})
    return Refused(shown, {one: tuple(counted[one, day] for day in shown) for one in reasons})


def _revised(found: pa.Table) -> tuple[RevisedWeek, ...]:
    rows = (
        RevisedWeek(
            row["cluster_id"],
            row["week"],
            row["revision"],
            row["revision_reason"] or NOTHING,
            row["computed_at"] and row["computed_at"].astimezone(UTC),
        )
        for row in found.to_pylist()
    )
    oldest = datetime.min.replace(tzinfo=UTC)
    newest_first = sorted(rows, key=lambda one: (one.computed_at or oldest, one.revision), reverse=True)
    return tuple(newest_first)
