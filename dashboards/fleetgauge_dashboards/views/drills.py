"""Failovers that were forecast or tried: what they would have cost, and cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.groups import reasons_of


@dataclass(frozen=True, slots=True)
class DrilledGroup:
    """One group of a drill; what was measured is None where it was a forecast alone."""

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
        return self.active, self.passive


@dataclass(frozen=True, slots=True)
class Drill:
    """All of its groups together: READY where each is."""

    at: datetime
    author: str
    active: str
    passive: str
    groups: int
    ready: int
    executed: bool

    @property
    def is_ready(self) -> bool:
        return self.ready == self.groups

    @property
    def verdict(self) -> str:
        return "READY" if self.is_ready else "NOT READY"


def drilled(rows: Iterable[Row]) -> tuple[DrilledGroup, ...]:
    """Newest first."""
    found = (_group(row) for row in rows)
    return tuple(sorted(sorted(found, key=lambda one: one.group_id), key=lambda one: one.at, reverse=True))


def last_drill(groups: Sequence[DrilledGroup], pair: tuple[str, str] | None = None) -> Drill | None:
    """The newest of all, or of a pair; ``groups`` are newest first."""
    of = [one for one in groups if pair in (None, one.pair)]
    own = [one for one in of if one.drill_id == of[0].drill_id]
    if not own:
        return None
    first = own[0]
    return Drill(
        first.at,
        first.author,
        first.active,
        first.passive,
        len(own),
        sum(one.ready for one in own),
        any(one.executed for one in own),
    )


def _group(row: Row) -> DrilledGroup:
    same = {
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
        **same,
        at=row["at"].astimezone(UTC),
        author=row["author"] or "",
        active=row["active"] or "",
        passive=row["passive"] or "",
        executed=bool(row["executed"]),
        ready=bool(row["ready"]),
        reasons=reasons_of(row["reasons"]),
    )
