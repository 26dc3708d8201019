"""How each mirror is now, and how far it is behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.recovery_freshness import newest_of_each, was_told

_KEY = ("source", "destination")


class MirrorState(StrEnum):
    """What its newest minute says; the symbol says it without colour."""

    FRESH = "fresh"
    STALE = "stands still"
    LOOP = "goes round"
    """Records come back to where they were made."""
    UNKNOWN = "nobody knows"

    @property
    def sign(self) -> str:
        return {"fresh": "●", "stands still": "▲", "goes round": "↻"}.get(self.value, "◌")


@dataclass(frozen=True, slots=True)
class MirrorNow:
    """A mirror at the end of its newest minute, ``until``; None while nothing was told of it.

    Its numbers are those that were told last, whether or not that is ``now``.
    """

    source: str
    destination: str
    until: datetime | None
    now: bool
    state: MirrorState
    behind_s_at_most: float | None = None
    behind_s: float | None = None
    behind_at_most: int | None = None
    behind: int | None = None
    silent_s: float | None = None
    tracer_p99_ms: int | None = None
    looped: int = 0
    silent: tuple[str, ...] = ()
    """Which of its clusters did not answer when it was looked at last."""

    @property
    def name(self) -> str:
        return f"{self.source} to {self.destination}"


def mirrors_now(rows: pa.Table, known: Sequence[tuple[str, str]], now: datetime) -> tuple[MirrorNow, ...]:
    """Those ``known`` of the fleet file; without any, those that were told of lately. By name."""
    told = {(row["source"], row["destination"]): row for row in newest_of_each(rows, _KEY)}
    return tuple(_mirror(between, told.get(between), now) for between in sorted(set(known) or told))


def _mirror(between: tuple[str, str], row: Row | None, now: datetime) -> MirrorNow:
    if row is None:
        return MirrorNow(*between, until=None, now=False, state=MirrorState.UNKNOWN)
    is_now = was_told(row["minute"], now)
    return MirrorNow(
        *between,
        until=row["minute"] + MINUTE,
        now=is_now,
        state=_state(row) if is_now else MirrorState.UNKNOWN,
        behind_s_at_most=row["behind_s_at_most"],
        behind_s=row["behind_s"],
        behind_at_most=row["behind_at_most"],
        behind=row["behind"],
        silent_s=row["silent_s"],
        tracer_p99_ms=row["tracer_p99_ms"],
        looped=row["looped"] or 0,
        silent=tuple(row[end] for end in _KEY if row[f"{end}_answers"] is False),
    )


def _state(row: Mapping[str, object]) -> MirrorState:
    if row["looped"]:
        return MirrorState.LOOP
    if row["fresh"] is None or row["partitions"] == 0:
        return MirrorState.UNKNOWN
    return MirrorState.FRESH if row["fresh"] else MirrorState.STALE
