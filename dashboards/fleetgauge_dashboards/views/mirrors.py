"""Assess the state and the replication lag of each mirror."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.reader.table import Row
from fleetgauge_dashboards.views.recovery_freshness import is_current, select_latest_rows

_KEY = ("source", "destination")


class MirrorHealth(StrEnum):
    """Whether a mirror replicates, judged by its newest minute.

    Values are written to downloaded files and do not change; ``label`` and ``sign`` are what pages show.
    """

    FRESH = "fresh"
    STALE = "stands still"
    LOOP = "goes round"
    """Records return to the cluster where they were produced."""
    UNKNOWN = "nobody knows"

    @property
    def label(self) -> str:
        """Return the word for a person."""
        return _LABELS[self]

    @property
    def sign(self) -> str:
        """Return a symbol that distinguishes the state without colour."""
        return _SIGNS[self]


_LABELS = {
    MirrorHealth.FRESH: "fresh",
    MirrorHealth.STALE: "stalled",
    MirrorHealth.LOOP: "looping",
    MirrorHealth.UNKNOWN: "unknown",
}
_SIGNS = {
    MirrorHealth.FRESH: "●",
    MirrorHealth.STALE: "▲",
    MirrorHealth.LOOP: "↻",
    MirrorHealth.UNKNOWN: "◌",
}


@dataclass(frozen=True, slots=True)
class MirrorLag:
    """A mirror at ``until``, the end of its newest minute; None while there is no observation of it.

    Numbers are the latest observed; they describe the present only if ``now`` is True. ``*_at_most`` are
    upper bounds, ``behind`` and ``behind_s`` estimates by tracers, in records and seconds.
    """

    source: str
    destination: str
    until: datetime | None
    now: bool
    state: MirrorHealth
    behind_s_at_most: float | None = None
    behind_s: float | None = None
    behind_at_most: int | None = None
    behind: int | None = None
    silent_s: float | None = None
    tracer_p99_ms: int | None = None
    looped: int = 0
    silent: tuple[str, ...] = ()
    """The clusters of the mirror that did not answer at the last check."""

    @property
    def name(self) -> str:
        """Return the mirror's name, source to destination."""
        return f"{self.source} to {self.destination}"


def latest_mirror_lags(
    rows: pa.Table, configured: Sequence[tuple[str, str]], now: datetime
) -> tuple[MirrorLag, ...]:
    """Return the newest state of each mirror, by name.

    Mirrors are those ``configured`` in the fleet file, or the recently observed ones if the file names none.
    """
    observed = {(row["source"], row["destination"]): row for row in select_latest_rows(rows, _KEY)}
    return tuple(_mirror(mirror, observed.get(mirror), now) for mirror in sorted(set(configured) or observed))


def _mirror(mirror: tuple[str, str], row: Row | None, now: datetime) -> MirrorLag:
    if row is None:
        return MirrorLag(*mirror, until=None, now=False, state=MirrorHealth.UNKNOWN)
    is_now = is_current(row["minute"], now)
    return MirrorLag(
        *mirror,
        until=row["minute"] + MINUTE,
        now=is_now,
        state=_state(row) if is_now else MirrorHealth.UNKNOWN,
        behind_s_at_most=row["behind_s_at_most"],
        behind_s=row["behind_s"],
        behind_at_most=row["behind_at_most"],
        behind=row["behind"],
        silent_s=row["silent_s"],
        tracer_p99_ms=row["tracer_p99_ms"],
        looped=row["looped"] or 0,
        silent=tuple(row[end] for end in _KEY if row[f"{end}_answers"] is False),
    )


def _state(row: Mapping[str, object]) -> MirrorHealth:
    if row["looped"]:
        return MirrorHealth.LOOP
    if row["fresh"] is None or row["partitions"] == 0:
        return MirrorHealth.UNKNOWN
    return MirrorHealth.FRESH if row["fresh"] else MirrorHealth.STALE
