"""Summarize failover drills: the forecast cost of a failover, and the cost of an executed drill."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.groups import parse_reasons


@dataclass(frozen=True, slots=True)
class DrilledGroup:
    """A consumer group in a drill; measured values are None where the drill was only a forecast."""

    drill_id: str
    at: datetime
    author: str
    active: str
    passive: str
    group_id: str
    executed: bool
    ready: bool
    reasons: tuple[str, ...]
    replay_forecast: int | None
    replay_at_most: int | None
    lost_at_most: int | None
    replayed: int | None
    missing: int | None
    decide_ms: int | None
    write_ms: int | None
    first_record_ms: int | None

    @property
    def pair(self) -> tuple[str, str]:
        """Return the active and the passive cluster."""
        return self.active, self.passive


@dataclass(frozen=True, slots=True)
class DrillSummary:
    """All groups of a drill together."""

    at: datetime
    author: str
    active: str
    passive: str
    groups: int
    ready: int
    executed: bool

    @property
    def is_ready(self) -> bool:
        """Return whether every group was ready."""
        return self.ready == self.groups

    @property
    def verdict(self) -> str:
        """Return the verdict in capitals: READY or NOT READY."""
        return "READY" if self.is_ready else "NOT READY"


def parse_drilled_groups(rows: Iterable[Row]) -> tuple[DrilledGroup, ...]:
    """Return the groups of recovery/drills' rows, newest drill first."""
    groups = (_group(row) for row in rows)
    return tuple(
        sorted(sorted(groups, key=lambda group: group.group_id), key=lambda group: group.at, reverse=True)
    )


def summarize_latest_drill(
    groups: Sequence[DrilledGroup], pair: tuple[str, str] | None = None
) -> DrillSummary | None:
    """Return the newest drill, or the newest of a pair of clusters; None without any.

    ``groups`` are newest first.
    """
    of_pair = [group for group in groups if pair in (None, group.pair)]
    latest = [group for group in of_pair if group.drill_id == of_pair[0].drill_id]
    if not latest:
        return None
    first = latest[0]
    return DrillSummary(
        first.at,
        first.author,
        first.active,
        first.passive,
        len(latest),
        sum(group.ready for group in latest),
        any(group.executed for group in latest),
    )


def _group(row: Row) -> DrilledGroup:
    copied = {
        name: row[name]
        for name in (
            "drill_id",
            "group_id",
            "replay_forecast",
            "replay_at_most",
            "lost_at_most",
            "replayed",
            "missing",
            "decide_ms",
            "write_ms",
            "first_record_ms",
        )
    }
    return DrilledGroup(
        **copied,
        at=row["at"].astimezone(UTC),
        author=row["author"] or "",
        active=row["active"] or "",
        passive=row["passive"] or "",
        executed=bool(row["executed"]),
        ready=bool(row["ready"]),
        reasons=parse_reasons(row["reasons"]),
    )
