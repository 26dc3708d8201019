"""The comparison of a look at a cluster with what was known before."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from fleetgauge_core.metadata import ClusterObservation, ConnectionEvent
from fleetgauge_operations.changes.plan.absent_brokers import Absences, follow_absences
from fleetgauge_operations.changes.plan.broker_changes import compare_brokers, compare_log_dirs
from fleetgauge_operations.changes.plan.cluster_changes import (
    compare_acls,
    compare_features,
    compare_quorum,
    compare_quotas,
)
from fleetgauge_operations.changes.plan.known_parts import KnownParts, forget_topic_settings, learn
from fleetgauge_operations.changes.plan.leadership_moves import LeadershipWindow, follow_leaderships
from fleetgauge_operations.changes.plan.observed_change import ObservedChange, limit_changes
from fleetgauge_operations.changes.plan.reassignments import Reassignment, follow_reassignment
from fleetgauge_operations.changes.plan.restarts import Connections, follow_connections
from fleetgauge_operations.changes.plan.setting_changes import (
    describe_setting_changes,
    find_setting_changes,
    select_throttles,
)
from fleetgauge_operations.changes.plan.throttles import Throttles, follow_throttles
from fleetgauge_operations.changes.plan.topic_changes import compare_topics


@dataclass(frozen=True, slots=True)
class ObservedHistory:
    """What an observer knows of a cluster, and what is going on there."""

    kafka_cluster_uuid: str = ""
    parts: KnownParts = field(default_factory=KnownParts)
    connections: Connections = field(default_factory=Connections)
    leaderships: LeadershipWindow | None = None
    reassignment: Reassignment | None = None
    throttles: Throttles = field(default_factory=Throttles)
    absences: Absences = field(default_factory=dict)


def compare(
    history: ObservedHistory, observation: ClusterObservation, events: Collection[ConnectionEvent] = ()
) -> tuple[ObservedHistory, tuple[ObservedChange, ...]]:
    """Return the history with this look, and the changes that it shows; the first look shows none.

    ``events`` are what happened to connections since the look before. A cluster that was made anew, with
    another ID, is looked at for the first time.
    """
    if observation.kafka_cluster_uuid != history.kafka_cluster_uuid:
        history, events = ObservedHistory(observation.kafka_cluster_uuid), ()
    before = forget_topic_settings(history.parts, observation, events)
    after = learn(before, observation)
    connections, restarts = follow_connections(history.connections, events, before, after)
    absences, absent = follow_absences(history.absences, after)
    leaderships, moves = follow_leaderships(history.leaderships, before, after)
    reassignment, moved = follow_reassignment(history.reassignment, before, after, observation.moved_bytes)
    settings = list(find_setting_changes(before, after))
    throttles, throttled = follow_throttles(history.throttles, select_throttles(settings), after)
    changes = (
        *compare_brokers(before, after),
        *restarts,
        *absent,
        *compare_log_dirs(before, after),
        *moves,
        *moved,
        *throttled,
        *compare_topics(before, after),
        *describe_setting_changes(settings),
        *compare_quotas(before, after),
        *compare_acls(before, after),
        *compare_quorum(before, after),
        *compare_features(before, after),
    )
    history = replace(
        history,
        parts=after,
        connections=connections,
        leaderships=leaderships,
        reassignment=reassignment,
        throttles=throttles,
        absences=absences,
    )
    return history, limit_changes(changes)
