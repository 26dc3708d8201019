"""Try every cluster of a fleet, and the telemetry cluster, for real."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import (
    Look,
    Registry,
    Silence,
    Target,
    TopicSpec,
    look_at,
    telemetry_specs,
)
from fleetgauge_probes.agent.topic_plan import TOPIC, Create, Home, plan
from fleetgauge_probes.connection.certificates import certificates
from fleetgauge_probes.connection.check import Check
from fleetgauge_probes.connection.clock import clock
from fleetgauge_probes.connection.permissions import (
    PROBING,
    TELEMETRY,
    Uses,
    rights,
)
from fleetgauge_probes.connection.reachability import brokers, reachable, version
from fleetgauge_probes.connection.topics import topics

_NO_TELEMETRY = Check(
    "reachable", False, "the file names no telemetry cluster", "say where records go: telemetry.bootstrap"
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found of one cluster."""

    cluster: str
    bootstrap: str | None
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class _Subject:
    cluster: str
    target: Target
    uses: Uses
    retired: frozenset[int] = frozenset()


def try_connections(fleet: Fleet, looked: Callable[[int], None], now: datetime) -> tuple[Findings, ...]:
    """Findings of each cluster, the telemetry cluster's last. ``looked`` is told how many are done."""
    subjects = [_measured(cluster) for cluster in fleet.clusters]
    if fleet.telemetry:
        subjects.append(_carrying(fleet.telemetry))
    looks = look_at([subject.target for subject in subjects], looked)
    found = [
        Findings(one.cluster, one.target.access.bootstrap, judge(look, one.uses, now, one.retired))
        for one, look in zip(subjects, looks, strict=True)
    ]
    if not fleet.telemetry:
        found.append(Findings("telemetry", None, (_NO_TELEMETRY,)))
    return tuple(found)


def _measured(cluster: Cluster) -> _Subject:
    retired = frozenset(cluster.retired)
    target = Target(cluster.access, lambda registry: probe_topic(registry, retired))
    return _Subject(cluster.id, target, PROBING, retired)


def _carrying(telemetry: Telemetry) -> _Subject:
    target = Target(telemetry.access, lambda registry: record_topics(registry, telemetry))
    return _Subject("telemetry", target, TELEMETRY)


def judge(look: Look, uses: Uses, now: datetime, retired: Set[int] = frozenset()) -> tuple[Check, ...]:
    """Every check, or why it cannot be tried; where no bootstrap address answers there is no more to say."""
    if look.unusable:
        return (Check("security", False, look.unusable, "correct `security`, or put there what it names"),)
    first = reachable(look.doors)
    if all(isinstance(knock, Silence) for knock in look.doors.values()):
        return (first,)
    shown = certificates(look.brokers, now)
    return (
        first,
        *((shown,) if shown else ()),
        brokers(look.brokers, look.registry, retired),
        version(look.brokers),
        rights(uses, look.rights, look.topics),
        clock(look.clock),
        topics(look.topics),
    )


def probe_topic(registry: Registry, retired: Set[int]) -> Sequence[TopicSpec]:
    """The probe topic as the agent would make it now."""
    homes = [Home(one.broker_id, one.rack) for b, one in registry.brokers.items() if b not in retired]
    return [
        TopicSpec(TOPIC, change.settings, assignment=change.replicas)
        for change in plan(homes, frozenset(), None)
        if isinstance(change, Create)
    ]


def record_topics(registry: Registry, telemetry: Telemetry) -> Sequence[TopicSpec]:
    """The topics that carry records, as whoever runs first would make them now."""
    return telemetry_specs(telemetry, sum(not one.fenced for one in registry.brokers.values()))
