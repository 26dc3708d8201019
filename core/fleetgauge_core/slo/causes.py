"""The cause of a bad minute: exactly one each, chosen by a fixed order of precedence.

Planned work precedes the findings that it produces; a finding precedes background work, for instance a
reassignment.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.tables import CAUSE_KINDS, ActionKind

MAINTENANCE, VANTAGE, UNKNOWN = "maintenance", "vantage", "unknown"
_VANTAGE_KINDS = ("VANTAGE_ILL", "PATH")
#: Findings about brokers and clusters, the most severe first.
_FAULTS = ("CLUSTER_DOWN", "BROKER_DOWN", "NETWORK_UNAVAILABLE", "STORAGE_STALLED", "DEGRADED")
#: The first of these that is active in a minute is its cause.
PRECEDENCE = (
    MAINTENANCE,
    ActionKind.ROLL.value,
    *_FAULTS,
    ActionKind.REASSIGNMENT.value,
    ActionKind.THROTTLE.value,
    VANTAGE,
    UNKNOWN,
)
_FINDING_KINDS = (*_FAULTS, *_VANTAGE_KINDS)

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class HealthTransition:
    """A row of ops/health_events: the state that a finding changed to, and when."""

    cluster_id: str
    broker_id: int | None
    fingerprint: str
    at: datetime
    to_state: str


@dataclass(frozen=True, slots=True)
class CauseInterval:
    """A possible cause of the bad minutes that overlap [starts, ends); ``ends`` is None while it lasts.

    With a home broker it explains a minute only if no other broker made that minute bad.
    """

    cluster_id: str
    cause: str
    starts: datetime
    ends: datetime | None
    home: int | None = None

    @property
    def precedence(self) -> int:
        """Position in PRECEDENCE; the lowest wins."""
        return PRECEDENCE.index(self.cause)

    def is_active_in(self, minute: datetime) -> bool:
        """Return whether the interval overlaps the minute."""
        return self.starts < minute + _MINUTE and (self.ends is None or self.ends > minute)


def find_cause(
    minute: datetime, bad_homes: Collection[int], agent_late: bool, intervals: Iterable[CauseInterval]
) -> str:
    """Return the cause of one bad minute, given the cause intervals of its cluster.

    ``bad_homes``: the brokers that were over the latency objective; ``agent_late``: whether a vantage was
    excluded from pooling because its agent was late.
    """
    active = [interval for interval in intervals if interval.is_active_in(minute)]
    causes = {interval.cause for interval in active if interval.home is None}
    if bad_homes and set(bad_homes) <= {interval.home for interval in active}:
        causes |= {interval.cause for interval in active}
    if agent_late:
        causes.add(VANTAGE)
    return min(causes, key=PRECEDENCE.index, default=UNKNOWN)


def build_cause_intervals(transitions: Iterable[HealthTransition]) -> list[CauseInterval]:
    """Return an interval for each finding: it lasts until the next transition with the same fingerprint."""
    histories: dict[tuple[str, int | None, str], list[HealthTransition]] = defaultdict(list)
    for transition in transitions:
        key = transition.cluster_id, transition.broker_id, transition.fingerprint
        histories[key].append(transition)
    return [
        interval
        for history in histories.values()
        for interval in _intervals_of(sorted(history, key=lambda transition: transition.at))
    ]


def _intervals_of(history: Sequence[HealthTransition]) -> list[CauseInterval]:
    ends = [transition.at for transition in history[1:]] + [None]
    return [
        CauseInterval(transition.cluster_id, _cause_of_state(transition.to_state), transition.at, end)
        for transition, end in zip(history, ends, strict=True)
        if transition.to_state in _FINDING_KINDS
    ]


def _cause_of_state(state: str) -> str:
    return VANTAGE if state in _VANTAGE_KINDS else state


def is_cause_action(kind: str) -> bool:
    """Return whether an action of this kind can be the cause of a bad minute."""
    return kind in CAUSE_KINDS


def count_by_segment(
    weeks: Iterable[tuple[str, Mapping[str, int]]], segments: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return (bad minutes, clusters with a bad minute) by (segment, segment value, cause).

    ``weeks``: each cluster with its bad minutes by cause; ``segments``: (cluster, segment, segment value).
    """
    minutes_by_cause = dict(weeks)
    totals: dict[tuple[str, str, str], tuple[int, int]] = {}
    for cluster_id, segment, value in segments:
        for cause, minutes in minutes_by_cause.get(cluster_id, {}).items():
            bad_minutes, clusters = totals.get((segment, value, cause), (0, 0))
            totals[segment, value, cause] = (bad_minutes + minutes, clusters + 1)
    return totals
