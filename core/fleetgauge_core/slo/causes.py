"""Why a minute was bad: one cause each, by one ordered rule.

What was planned explains the findings that it makes; a finding explains more
than work in the background does.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

MAINTENANCE, VANTAGE, UNKNOWN = "maintenance", "vantage", "unknown"
_VANTAGE_KINDS = ("VANTAGE_ILL", "PATH")
#: The first that holds in a minute is its cause.
PRECEDENCE = (
    MAINTENANCE,
    "roll",
    "CLUSTER_DOWN",
    "BROKER_DOWN",
    "NETWORK_UNAVAILABLE",
    "STORAGE_STALLED",
    "DEGRADED",
    "reassignment",
    "throttle",
    VANTAGE,
    UNKNOWN,
)
_FINDINGS = (*PRECEDENCE[2:7], *_VANTAGE_KINDS)
_ACTIONS = ("roll", "reassignment", "throttle")

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Event:
    """A change of state, as ops/health_events has it."""

    cluster_id: str
    broker_id: int | None
    fingerprint: str
    at: datetime
    to_state: str


@dataclass(frozen=True, slots=True)
class Reason:
    """What may explain the bad minutes that [starts, ends) touches; ``ends`` is None for what still goes on.

    With a home it explains a minute only if no other broker made it bad.
    """

    cluster_id: str
    cause: str
    starts: datetime
    ends: datetime | None
    home: int | None = None

    @property
    def rank(self) -> int:
        """The lowest wins."""
        return PRECEDENCE.index(self.cause)

    def holds(self, minute: datetime) -> bool:
        return self.starts < minute + _MINUTE and (self.ends is None or self.ends > minute)


def cause_of(
    minute: datetime, bad_homes: Collection[int], agent_late: bool, reasons: Iterable[Reason]
) -> str:
    """The cause of one bad minute, from the reasons of its cluster.

    ``bad_homes``: the brokers that were over the objective; ``agent_late``: whether a vantage left pooling.
    """
    holding = [one for one in reasons if one.holds(minute)]
    causes = {one.cause for one in holding if one.home is None}
    if bad_homes and set(bad_homes) <= {one.home for one in holding}:
        causes |= {one.cause for one in holding}
    if agent_late:
        causes.add(VANTAGE)
    return min(causes, key=PRECEDENCE.index, default=UNKNOWN)


def findings(events: Iterable[Event]) -> list[Reason]:
    """The episodes that the events tell of: each lasts until the next event of the same finding."""
    chains: dict[tuple[str, int | None, str], list[Event]] = defaultdict(list)
    for event in events:
        chains[event.cluster_id, event.broker_id, event.fingerprint].append(event)
    return [one for chain in chains.values() for one in _episodes(sorted(chain, key=lambda e: e.at))]


def _episodes(chain: Sequence[Event]) -> list[Reason]:
    ends = [event.at for event in chain[1:]] + [None]
    return [
        Reason(event.cluster_id, _cause(event.to_state), event.at, end)
        for event, end in zip(chain, ends, strict=True)
        if event.to_state in _FINDINGS
    ]


def _cause(state: str) -> str:
    return VANTAGE if state in _VANTAGE_KINDS else state


def is_action(kind: str) -> bool:
    """Whether an action of this kind can be a cause."""
    return kind in _ACTIONS


def by_segment(
    weeks: Iterable[tuple[str, Mapping[str, int]]], segments: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Bad minutes and clusters with any, by segment, value and cause.

    ``weeks``: cluster and its bad minutes by cause; ``segments``: cluster, segment, value.
    """
    counts = dict(weeks)
    totals: dict[tuple[str, str, str], tuple[int, int]] = {}
    for cluster_id, segment, value in segments:
        for cause, minutes in counts.get(cluster_id, {}).items():
            before = totals.get((segment, value, cause), (0, 0))
            totals[segment, value, cause] = (before[0] + minutes, before[1] + 1)
    return totals
