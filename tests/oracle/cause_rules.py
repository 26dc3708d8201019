"""The causes of bad minutes, by order of precedence."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

from tests.oracle.correction_rules import Occurrence
from tests.oracle.minute_rules import MINUTE, Row
from tests.oracle.operations import Operations
from tests.oracle.settings import ClusterSettings, Settings

FINDING_KINDS = ("CLUSTER_DOWN", "BROKER_DOWN", "NETWORK_UNAVAILABLE", "STORAGE_STALLED", "DEGRADED")
VANTAGE_KINDS = ("VANTAGE_ILL", "PATH")
#: Names of periods, the first that is active is the cause. "roll" is what a roll makes of its own broker, and
#: "effects of a roll" what it makes of others.
ORDER = ("roll", *FINDING_KINDS, "effects of a roll", "reassignment", "throttle", "vantage", "change")
REPORTED = ("deploy", "ticket", "host_maintenance", "other")
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ActivePeriod:
    """A period in which something of a kind was active; ``ends`` is None while it lasts.

    One of a broker explains only minutes that no other broker made bad.
    """

    kind: str
    starts: datetime
    ends: datetime | None
    broker_id: int | None = None


def _overlaps(period: ActivePeriod | Occurrence, minute: datetime) -> bool:
    """Return whether the period overlaps the minute.

    So maintenance causes the minute in which it begins, although that minute still counts.
    """
    return period.starts < minute + MINUTE and (period.ends is None or period.ends > minute)


# --- Actions, changes and findings of a cluster -----------------------------------------------


def list_actions(operations: Operations, cluster_id: str) -> list[ActivePeriod]:
    return [
        ActivePeriod(action["kind"], action["starts"], action["ends"])
        for action in operations.actions
        if action["cluster_id"] == cluster_id
    ]


def list_changes(operations: Operations, cluster: ClusterSettings) -> list[ActivePeriod]:
    """Return a period for each roll, lasting change and reported change of a cluster."""
    periods = []
    for change in _latest_changes(operations, cluster):
        last = change["ends"] or _end_of_following_day(change["at"])
        if change["kind"] in ("reassignment", "throttle"):
            periods.append(ActivePeriod(change["kind"], change["starts"], last + 60 * SECOND))
        elif change["kind"] in REPORTED:
            last += 600 * SECOND
            periods.append(ActivePeriod("change", change["starts"], last, change["broker_id"]))
    for restart in _list_rolls(operations, cluster):
        periods.append(ActivePeriod("effects of a roll", *_roll_period(restart)))
    return periods


def _latest_changes(operations: Operations, cluster: ClusterSettings) -> list[Mapping[str, Any]]:
    latest: dict[str, Mapping[str, Any]] = {}
    for change in operations.changes:
        is_of_segment = (change["segment"], change["segment_value"]) in cluster.segments
        if change["cluster_id"] == cluster.cluster_id or (change["cluster_id"] is None and is_of_segment):
            earlier = latest.get(change["change_id"])
            if earlier is None or change["at"] >= earlier["at"]:
                latest[change["change_id"]] = change
    return [
        change
        for change in latest.values()
        if not (change["kind"] in REPORTED and change["phase"] == "cancelled")
    ]


def _end_of_following_day(at: datetime) -> datetime:
    day = at.date() + timedelta(days=2)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _list_rolls(operations: Operations, cluster: ClusterSettings) -> list[Mapping[str, Any]]:
    """Return the orderly restarts of brokers that had no fault when they began."""
    faults = [
        (broker_id, episode)
        for broker_id, episode in _list_states(operations, cluster.cluster_id)
        if episode.kind in FINDING_KINDS
    ]
    rolls = []
    for change in _latest_changes(operations, cluster):
        if change["kind"] != "broker_restarted" or json.loads(change["evidence"])["orderly"] is not True:
            continue
        had_fault = any(
            broker_id == change["broker_id"]
            and episode.starts < (begin := _may_be_slow_from(change, episode))
            and (episode.ends is None or episode.ends > begin)
            for broker_id, episode in faults
        )
        if not had_fault:
            rolls.append(change)
    return rolls


def _may_be_slow_from(restart: Mapping[str, Any], episode: ActivePeriod) -> datetime:
    """Return since when a fault may follow from a restart: slowness while leaders are handed over."""
    starts: datetime = restart["starts"]
    return starts - 15 * SECOND if episode.kind == "DEGRADED" else starts


def _roll_period(restart: Mapping[str, Any]) -> tuple[datetime, datetime]:
    return restart["starts"] - 15 * SECOND, restart["ends"] + 60 * SECOND


def list_episodes(operations: Operations, cluster: ClusterSettings) -> list[ActivePeriod]:
    """Return what each finding explains."""
    rolls = [(roll["broker_id"], *_roll_period(roll)) for roll in _list_rolls(operations, cluster)]
    periods = []
    for broker_id, episode in _list_states(operations, cluster.cluster_id):
        kind, starts, ends = episode.kind, episode.starts, episode.ends
        if kind in VANTAGE_KINDS:
            periods.append(ActivePeriod("vantage", starts, ends))
        if kind not in FINDING_KINDS:
            continue
        if operations.is_of_kept_lake:
            pass
        elif kind == "DEGRADED":
            starts -= 75 * SECOND
        else:
            starts -= 10 * SECOND
            ends = ends and ends + 60 * SECOND
        is_of_roll = any(
            broker_id == rolled and first <= episode.starts < last for rolled, first, last in rolls
        )
        periods.append(ActivePeriod("roll" if is_of_roll else kind, starts, ends))
    return periods


def _list_states(operations: Operations, cluster_id: str) -> list[tuple[int | None, ActivePeriod]]:
    """Return each state of each finding with its broker: from its event to the finding's next event."""
    by_finding: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for event in operations.health_events:
        if event["cluster_id"] == cluster_id:
            by_finding[event["broker_id"], event["fingerprint"]].append(event)
    return [
        (broker_id, period) for (broker_id, _), events in by_finding.items() for period in _episodes(events)
    ]


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

    ``clients``: the minute's client broker-minutes; ``periods``: the cluster's actions, changes and findings.
    """
    slow = _brokers_over_objective(cluster, clients)
    if not slow:
        return None
    if _is_under_maintenance(
        slow, [occurrence for occurrence in corrections if _overlaps(occurrence, minute["minute"])]
    ):
        return "maintenance"
    active = [period for period in periods if _overlaps(period, minute["minute"])]
    kinds = {period.kind for period in active if period.broker_id is None}
    # Of all kinds, only reported changes concern single brokers.
    if slow <= {period.broker_id for period in active if period.kind == "change"}:
        kinds.add("change")
    if any(broker_row["agent_late"] for broker_row in clients):
        kinds.add("vantage")
    first = next((kind for kind in ORDER if kind in kinds), "unknown")
    return "roll" if first == "effects of a roll" else first


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
