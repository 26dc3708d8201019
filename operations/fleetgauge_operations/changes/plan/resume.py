"""What an observer knows when it begins: the changes that last, as the topic of changes has them.

An observer that begins has seen nothing yet. Without the begin of a reassignment, of a throttle or of a
broker's absence it would record the end of another change, and the first one would last for ever.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.metadata import SettingOwner, SettingScope, TopicPartition
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.change_records import derive_change_id
from fleetgauge_operations.changes.plan.comparison import ObservedHistory
from fleetgauge_operations.changes.plan.reassignments import Reassignment, Target
from fleetgauge_operations.changes.plan.setting_changes import THROTTLE_SETTINGS
from fleetgauge_operations.changes.plan.throttles import ThrottleHistory, Throttles


@dataclass(frozen=True, slots=True)
class ResumedHistory:
    """The history of an observer that begins, and the lasting changes that it cannot follow.

    Those are of a cluster that was made anew, of another version, or a second one where there can be one.
    """

    history: ObservedHistory
    unmatched: tuple[ClusterChange, ...] = ()


def resume(kafka_cluster_uuid: str, lasting: Iterable[ClusterChange]) -> ResumedHistory:
    """Return what is known of a cluster with this ID, given its recorded changes that have not ended."""
    history, unmatched = ObservedHistory(kafka_cluster_uuid), []
    for record in sorted(lasting, key=lambda record: record.at, reverse=True):
        try:
            resumed = _resume(history, kafka_cluster_uuid, record)
        except (ValueError, TypeError, AttributeError):
            resumed = None
        if resumed is None:
            unmatched.append(record)
        else:
            history = resumed
    return ResumedHistory(history, tuple(unmatched))


def _resume(
    history: ObservedHistory, kafka_cluster_uuid: str, record: ClusterChange
) -> ObservedHistory | None:
    """Return the history with a change, or None if its end would have another ID.

    Raises: ValueError, TypeError, AttributeError if its values cannot be understood.
    """
    after, before = json.loads(record.after or "null"), json.loads(record.before or "null")
    key = next(iter(after)) if record.kind == ChangeKind.THROTTLE else ""
    identity = (record.kind, record.broker_id, record.topic, key, record.starts)
    if record.change_id != derive_change_id(kafka_cluster_uuid, record.cluster_id or "", *identity):
        return None
    if record.kind == ChangeKind.REASSIGNMENT and history.reassignment is None:
        return replace(history, reassignment=_build_reassignment(record, after, before or {}))
    if record.kind == ChangeKind.BROKER_GONE and record.broker_id is not None:
        return replace(history, absences={**history.absences, record.broker_id: (record.starts, True)})
    if record.kind == ChangeKind.THROTTLE and key in THROTTLE_SETTINGS:
        throttle = ThrottleHistory(record.starts, ((record.at, after[key]),))
        histories = {**history.throttles.histories, (_find_owner(record), key): throttle}
        return replace(history, throttles=Throttles(histories))
    return None


def _build_reassignment(record: ClusterChange, after: Any, before: Any) -> Reassignment:
    targets = {
        _parse_partition(name): _build_target(before.get(name), replicas) for name, replicas in after.items()
    }
    return Reassignment(record.starts, targets, frozenset(targets), reported_at=record.at)


def _build_target(before: list[int] | None, after: list[int]) -> Target:
    if before is None:
        return Target(None, tuple(after), frozenset())
    return Target(tuple(before), tuple(after), frozenset(before) ^ frozenset(after))


def _parse_partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _find_owner(record: ClusterChange) -> SettingOwner:
    if record.topic is not None:
        return SettingOwner(SettingScope.TOPIC, record.topic)
    if record.broker_id is not None:
        return SettingOwner(SettingScope.BROKER, str(record.broker_id))
    return SettingOwner(SettingScope.ALL_BROKERS, "")
