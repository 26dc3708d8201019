"""Causes: why a minute was bad, by the first reason that holds."""

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

FINDINGS = ("CLUSTER_DOWN", "BROKER_DOWN", "NETWORK_UNAVAILABLE", "STORAGE_STALLED", "DEGRADED")
OF_THE_VANTAGE = ("VANTAGE_ILL", "PATH")


@dataclass(frozen=True, slots=True)
class Span:
    """Something of that kind went on; without ``ends`` it still does."""

    kind: str
    starts: datetime
    ends: datetime | None


def _touches(span: Span | Occurrence, minute: datetime) -> bool:
    """In any part of the minute; so that one in which maintenance begins is bad because of it, yet counts."""
    return span.starts < minute + MINUTE and (span.ends is None or span.ends > minute)


# --- What went on in a cluster -----------------------------------------------


def actions(operations: Operations, cluster_id: str) -> list[Span]:
    return [
        Span(one["kind"], one["starts"], one["ends"])
        for one in operations.actions
        if one["cluster_id"] == cluster_id
    ]


def episodes(operations: Operations, cluster_id: str) -> list[Span]:
    """From the event that enters a state to the next of the same finding that enters another."""
    by_finding: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for event in operations.health_events:
        if event["cluster_id"] == cluster_id:
            by_finding[event["broker_id"], event["fingerprint"]].append(event)
    return [span for events in by_finding.values() for span in _episodes(events)]


def _episodes(events: Iterable[Mapping[str, Any]]) -> Iterator[Span]:
    ordered = [(event["at"], event["to_state"]) for event in sorted(events, key=lambda event: event["at"])]
    for (at, state), (following, _) in pairwise(ordered):
        yield Span(state, at, following)
    at, state = ordered[-1]
    yield Span(state, at, None)


# --- The cause of a minute ---------------------------------------------------


def cause(
    minute: Row,
    clients: Sequence[Row],
    cluster: ClusterSettings,
    corrections: Sequence[Occurrence],
    went_on: Sequence[Span],
) -> str | None:
    """``clients``: the minute's client broker-minutes; ``went_on``: the cluster's actions and episodes."""
    slow = _over(cluster, clients)
    if not slow:
        return None
    if _maintained(slow, [one for one in corrections if _touches(one, minute["minute"])]):
        return "maintenance"
    kinds = {span.kind for span in went_on if _touches(span, minute["minute"])}
    known = [kind for kind in ("roll", *FINDINGS, "reassignment", "throttle") if kind in kinds]
    if known:
        return known[0]
    agent_late = any(one["agent_late"] for one in clients)
    return "vantage" if agent_late or kinds.intersection(OF_THE_VANTAGE) else "unknown"


def _over(cluster: ClusterSettings, clients: Iterable[Row]) -> set[int]:
    """Brokers whose censored p99 is over the objective; the worst one's is the minute's."""
    return {
        one["broker_id"]
        for one in clients
        if one["measured"] and one["latency_p99_censored_us"] > cluster.latency_objective_us
    }


def _maintained(slow: set[int], corrections: Sequence[Occurrence]) -> bool:
    """The whole cluster was, or every broker that made the minute bad."""
    of_brokers = {one.broker_id for one in corrections}
    return None in of_brokers or slow <= of_brokers


# --- What burns the budget ---------------------------------------------------


def burn_causes(weeks: Iterable[Row], settings: Settings) -> list[Row]:
    """Bad minutes by cause and how many clusters have any, for each week and segment."""
    segments = {cluster.cluster_id: cluster.segments for cluster in settings.clusters}
    minutes: Counter[tuple[date, str, str, str]] = Counter()
    clusters: Counter[tuple[date, str, str, str]] = Counter()
    for row in weeks:
        for segment, value in segments[row["cluster_id"]]:
            for why, bad_minutes in row["causes"].items():
                minutes[row["week"], segment, value, why] += bad_minutes
                clusters[row["week"], segment, value, why] += 1
    names = ("week", "segment", "segment_value", "cause")
    return [
        dict(zip(names, key, strict=True)) | {"bad_minutes": minutes[key], "clusters": clusters[key]}
        for key in minutes
    ]
