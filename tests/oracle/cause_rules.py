"""The causes of bad minutes, by order of precedence."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from tests.oracle.correction_rules import Occurrence
from tests.oracle.minute_rules import MINUTE, Row
from tests.oracle.operations import Operations
from tests.oracle.settings import ClusterSettings, Settings

FINDING_KINDS = ("CLUSTER_DOWN", "BROKER_DOWN", "NETWORK_UNAVAILABLE", "STORAGE_STALLED", "DEGRADED")
VANTAGE_KINDS = ("VANTAGE_ILL", "PATH")


@dataclass(frozen=True, slots=True)
class ActivePeriod:
    """A period in which an action or a finding of a kind was active; ``ends`` is None while it lasts."""

    kind: str
    starts: datetime
    ends: datetime | None


def _overlaps(period: ActivePeriod | Occurrence, minute: datetime) -> bool:
    """Return whether the period overlaps the minute.

    So maintenance causes the minute in which it begins, although that minute still counts.
    """
    return period.starts < minute + MINUTE and (period.ends is None or period.ends > minute)


# --- Actions and findings of a cluster -----------------------------------------------


def list_actions(operations: Operations, cluster_id: str) -> list[ActivePeriod]:
    return [
        ActivePeriod(action["kind"], action["starts"], action["ends"])
        for action in operations.actions
        if action["cluster_id"] == cluster_id
    ]


def list_episodes(operations: Operations, cluster_id: str) -> list[ActivePeriod]:
    """Return a period for each state of each finding: from its event to the finding's next event."""
    by_finding: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for event in operations.health_events:
        if event["cluster_id"] == cluster_id:
            by_finding[event["broker_id"], event["fingerprint"]].append(event)
    return [period for events in by_finding.values() for period in _episodes(events)]


def _episodes(events: Iterable[Mapping[str, Any]]) -> Iterator[ActivePeriod]:
    ordered = [(event["at"], event["to_state"]) for event in sorted(events, key=lambda event: event["at"])]
    for (at, state), (following, _) in pairwise(ordered):
        yield ActivePeriod(state, at, following)
    at, state = ordered[-1]
    yield ActivePeriod(state, at, None)


# --- The cause of a minute ---------------------------------------------------


def find_cause(
    minute: Row,
    clients: Sequence[Row],
    cluster: ClusterSettings,
    corrections: Sequence[Occurrence],
    periods: Sequence[ActivePeriod],
) -> str | None:
    """Return the cause of a minute, None if the minute is not bad.

    ``clients``: the minute's client broker-minutes; ``periods``: the cluster's actions and findings.
    """
    slow = _brokers_over_objective(cluster, clients)
    if not slow:
        return None
    if _is_under_maintenance(
        slow, [occurrence for occurrence in corrections if _overlaps(occurrence, minute["minute"])]
    ):
        return "maintenance"
    kinds = {period.kind for period in periods if _overlaps(period, minute["minute"])}
    active = [kind for kind in ("roll", *FINDING_KINDS, "reassignment", "throttle") if kind in kinds]
    if active:
        return active[0]
    agent_late = any(broker_row["agent_late"] for broker_row in clients)
    return "vantage" if agent_late or kinds.intersection(VANTAGE_KINDS) else "unknown"


def _brokers_over_objective(cluster: ClusterSettings, clients: Iterable[Row]) -> set[int]:
    """Return the brokers whose censored p99 is over the latency objective."""
    return {
        broker_row["broker_id"]
        for broker_row in clients
        if broker_row["measured"] and broker_row["latency_p99_censored_us"] > cluster.latency_objective_us
    }


def _is_under_maintenance(slow: set[int], corrections: Sequence[Occurrence]) -> bool:
    """Return whether the corrections cover the whole cluster or every broker that made the minute bad."""
    corrected_brokers = {occurrence.broker_id for occurrence in corrections}
    return None in corrected_brokers or slow <= corrected_brokers


# --- Causes by week and segment ---------------------------------------------------


def compute_burn_causes(weeks: Iterable[Row], settings: Settings) -> list[Row]:
    """Return bad minutes, and clusters with a bad minute, by week, segment and cause."""
    segments = {cluster.cluster_id: cluster.segments for cluster in settings.clusters}
    minutes: Counter[tuple[date, str, str, str]] = Counter()
    clusters: Counter[tuple[date, str, str, str]] = Counter()
    for row in weeks:
        for segment, value in segments[row["cluster_id"]]:
            for cause, bad_minutes in row["causes"].items():
                minutes[row["week"], segment, value, cause] += bad_minutes
                clusters[row["week"], segment, value, cause] += 1
    names = ("week", "segment", "segment_value", "cause")
    return [
        dict(zip(names, key, strict=True)) | {"bad_minutes": minutes[key], "clusters": clusters[key]}
        for key in minutes
    ]
