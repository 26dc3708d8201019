"""Whether a new correction would exclude anything, as far as its own times and other corrections tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetgauge_core.slo.corrections import (
    RECURRENCES,
    ClusterSegments,
    Correction,
    find_occurrences,
)

_MINUTE = timedelta(minutes=1)
#: How far the occurrences of a correction without an end are compared: both changes of a clock are within.
_COMPARED = timedelta(days=400)
#: How long minutes that nobody has measured yet are expected at most.
MAX_DELAY = timedelta(days=35)

#: From when until when a cluster's minutes count; None for no limit.
Lifetime = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class CorrectableFleet:
    """What a correction may refer to: each cluster's segments and lifetime, and the zone of local times."""

    segments: Mapping[str, ClusterSegments]
    zone: str
    lifetimes: Mapping[str, Lifetime] = field(default_factory=dict)

    def find_targets(self, correction: Correction) -> list[str]:
        """Return the ids of the clusters of which the correction may exclude minutes, in order."""
        return sorted(
            cluster_id
            for cluster_id, segments in self.segments.items()
            if correction.applies_to(cluster_id, segments)
        )


def last_end(correction: Correction) -> datetime | None:
    """Return when the correction's last occurrence has ended at the latest; None if it recurs for ever."""
    if correction.recurs is None:
        return correction.ends
    if correction.recurs_until is None:
        return None
    return correction.recurs_until + RECURRENCES[correction.recurs]


def explain_missing_effect(
    correction: Correction, fleet: CorrectableFleet, others: Iterable[Correction]
) -> str | None:
    """Return why the correction excludes nothing whatever was measured; None if it may exclude something.

    ``others`` are the corrections that were not withdrawn.
    """
    if _round_up(correction.starts) >= _round_up(correction.ends):
        return "no minute begins within the range"
    if correction.recurs_until is not None and correction.recurs_until <= correction.starts:
        return "it would never begin: --until is not later than --from"
    targets = fleet.find_targets(correction)
    living = [cluster for cluster in targets if _overlaps(correction, fleet.lifetimes.get(cluster))]
    if not living:
        return f"minutes of {', '.join(targets)} do not count then: see `since` and `until` in the fleet file"
    others = list(others)
    covering = [_find_covering(correction, cluster, fleet, others) for cluster in living]
    if all(covering):
        ids = ", ".join(sorted({correction_id for ids in covering for correction_id in ids}))
        return f"these minutes are excluded already, by correction {ids}"
    return None


def _overlaps(correction: Correction, lifetime: Lifetime | None) -> bool:
    since, until = lifetime or (None, None)
    ends = last_end(correction)
    return (until is None or correction.starts < until) and (since is None or ends is None or ends > since)


def _find_covering(
    correction: Correction, cluster_id: str, fleet: CorrectableFleet, others: Iterable[Correction]
) -> set[str]:
    """Return the ids of corrections that together exclude all that this one does; empty if they do not."""
    ends = last_end(correction)
    hi = min(filter(None, (ends, correction.starts + _COMPARED + (correction.ends - correction.starts))))
    wanted = _list_minutes(correction, fleet.zone, correction.starts, hi)
    excluded = [
        (starts, until, other.correction_id)
        for other in others
        if other.applies_to(cluster_id, fleet.segments[cluster_id])
        and other.broker_id in (None, correction.broker_id)
        # One that ends earlier does not exclude what comes after the compared part.
        and (hi == ends or _ends_later(other, ends))
        for starts, until in _list_minutes(other, fleet.zone, correction.starts, hi)
    ]
    covering: set[str] = set()
    for starts, until in wanted:
        covered_until = starts
        for other_starts, other_until, correction_id in sorted(excluded):
            if other_starts <= covered_until < other_until:
                covered_until = other_until
                covering.add(correction_id)
        if covered_until < until:
            return set()
    return covering


def _ends_later(correction: Correction, ends: datetime | None) -> bool:
    """Return whether a correction lasts until ``ends`` at least, which is None for no end."""
    last = last_end(correction)
    return last is None or (ends is not None and last >= ends)


def _list_minutes(
    correction: Correction, zone: str, lo: datetime, hi: datetime
) -> list[tuple[datetime, datetime]]:
    """Return the first minute of each occurrence, and the minute after its last one."""
    occurrences = find_occurrences(correction, zone, lo, hi)
    minutes = ((_round_up(starts), _round_up(ends)) for starts, ends in occurrences)
    return [(starts, ends) for starts, ends in minutes if starts < ends]


def _round_up(at: datetime) -> datetime:
    """Return the first minute that begins at this time or later."""
    rest = timedelta(seconds=at.second, microseconds=at.microsecond)
    return at + (_MINUTE - rest) if rest else at
