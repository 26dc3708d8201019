"""The cause of a bad minute: exactly one each, chosen by a fixed order of precedence.

Planned work precedes the findings that it produces; a finding precedes background work, for instance a
reassignment. Changes are explained in fleetgauge_core.slo.change_causes.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.tables import CAUSE_KINDS, ActionKind

MAINTENANCE, VANTAGE, UNKNOWN = "maintenance", "vantage", "unknown"
#: The cause of minutes that a change explains which a person or another system reported.
REPORTED_CHANGE = "change"
_VANTAGE_KINDS = ("VANTAGE_ILL", "PATH")
#: The kind of finding about a broker that answers, but slowly.
SLOWNESS = "DEGRADED"
#: Findings about brokers and clusters, the most severe first.
_FAULTS = ("CLUSTER_DOWN", "BROKER_DOWN", "NETWORK_UNAVAILABLE", "STORAGE_STALLED", SLOWNESS)
#: The first of these that is active in a minute is its cause. A roll comes twice: it precedes the findings
#: that it produces, and explains of the others' minutes only those that no finding explains.
PRECEDENCE = (
    MAINTENANCE,
    ActionKind.ROLL.value,
    *_FAULTS,
    ActionKind.ROLL.value,
    ActionKind.REASSIGNMENT.value,
    ActionKind.THROTTLE.value,
    VANTAGE,
    REPORTED_CHANGE,
    UNKNOWN,
)
_AFTER_FINDINGS = PRECEDENCE.index(_FAULTS[-1]) + 1
_FINDING_KINDS = (*_FAULTS, *_VANTAGE_KINDS)

#: How long a fault has lasted at most when its finding is opened: a slow broker is compared with its past for
#: a minute, with up to 15 s until the next look; any other fault is named within ten seconds.
_DETECTED_WITHIN = {SLOWNESS: timedelta(seconds=75)}
_DETECTED_WITHIN_DEFAULT = timedelta(seconds=10)
LONGEST_DETECTION = max(_DETECTED_WITHIN.values())
#: After the end of an outage clients still reconnect, and replicas catch up; a slow broker is observed to be
#: fast again.
_RECOVERS_WITHIN = timedelta(minutes=1)
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
class FindingPeriod:
    """A finding about a broker (None: a cluster) from its opening until it was resolved or became another."""

    cluster_id: str
    broker_id: int | None
    kind: str
    starts: datetime
    ends: datetime | None

    @property
    def is_fault(self) -> bool:
        """Whether it is about a broker or a cluster, rather than about the vantage that measured."""
        return self.kind in _FAULTS


@dataclass(frozen=True, slots=True)
class CauseInterval:
    """A possible cause of the bad minutes that overlap [starts, ends); ``ends`` is None while it lasts.

    With home brokers, the intervals of one cause explain a minute only if no other broker made it bad. A roll
    that comes ``after_findings`` explains only what no finding explains.
    """

    cluster_id: str
    cause: str
    starts: datetime
    ends: datetime | None
    home: int | None = None
    after_findings: bool = False

    @property
    def precedence(self) -> int:
        """Position in PRECEDENCE; the lowest wins."""
        return PRECEDENCE.index(self.cause, _AFTER_FINDINGS if self.after_findings else 0)

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
    homes: dict[int, set[int | None]] = defaultdict(set)
    for interval in active:
        homes[interval.precedence].add(interval.home)
    ranks = [
        rank
        for rank, of_rank in homes.items()
        if None in of_rank or (bad_homes and set(bad_homes) <= of_rank)
    ]
    if agent_late:
        ranks.append(PRECEDENCE.index(VANTAGE))
    return PRECEDENCE[min(ranks, default=PRECEDENCE.index(UNKNOWN))]


def list_findings(transitions: Iterable[HealthTransition]) -> list[FindingPeriod]:
    """Return each finding: it lasts until the next transition with the same fingerprint."""
    histories: dict[tuple[str, int | None, str], list[HealthTransition]] = defaultdict(list)
    for transition in transitions:
        key = transition.cluster_id, transition.broker_id, transition.fingerprint
        histories[key].append(transition)
    return [
        finding
        for history in histories.values()
        for finding in _findings_of(sorted(history, key=lambda transition: transition.at))
    ]


def _findings_of(history: Sequence[HealthTransition]) -> list[FindingPeriod]:
    ends = [transition.at for transition in history[1:]] + [None]
    return [
        FindingPeriod(transition.cluster_id, transition.broker_id, transition.to_state, transition.at, end)
        for transition, end in zip(history, ends, strict=True)
        if transition.to_state in _FINDING_KINDS
    ]


def build_finding_interval(finding: FindingPeriod) -> CauseInterval:
    """Return what a finding explains: also the time until it was noticed, and until clients had recovered."""
    if finding.kind in _VANTAGE_KINDS:
        return CauseInterval(finding.cluster_id, VANTAGE, finding.starts, finding.ends)
    recovery = timedelta(0) if finding.kind in _DETECTED_WITHIN else _RECOVERS_WITHIN
    return CauseInterval(
        finding.cluster_id,
        finding.kind,
        shift(finding.starts, -_DETECTED_WITHIN.get(finding.kind, _DETECTED_WITHIN_DEFAULT)),
        shift(finding.ends, recovery) if finding.ends else None,
    )


def shift(at: datetime, by: timedelta) -> datetime:
    """Return a time moved by a duration, but not beyond the years 1 to 9999: a record may hold any time."""
    try:
        return at + by
    except OverflowError:
        return at


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
