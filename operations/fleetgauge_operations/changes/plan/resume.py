"""What an observer knows when it begins: the changes that last, as the topic of changes has them.

An observer that begins has seen nothing yet. Without the begin of a reassignment, of a throttle or of a
broker's absence it would record the end of another change, and the first one would last for ever.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.metadata import SettingOwner, SettingScope, TopicPartition
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.comparison import ObservedHistory
from fleetgauge_operations.changes.plan.reassignments import Reassignment, Target
from fleetgauge_operations.changes.plan.throttles import ThrottleHistory, ThrottleKey, Throttles


def resume(lasting: Iterable[ClusterChange]) -> ObservedHistory:
    """Return the history of an observer that begins, with the changes of its cluster that have not ended.

    A record that cannot be understood, as of another version, is left out.
    """
    history = ObservedHistory()
    throttles: dict[ThrottleKey, ThrottleHistory] = {}
    for record in lasting:
        try:
            values = json.loads(record.after or "null"), json.loads(record.before or "null")
            if record.kind == ChangeKind.REASSIGNMENT:
                history = replace(history, reassignment=_resume_reassignment(record, *values))
            elif record.kind == ChangeKind.BROKER_GONE and record.broker_id is not None:
                absences = {**history.absences, record.broker_id: (record.starts, True)}
                history = replace(history, absences=absences)
            elif record.kind == ChangeKind.THROTTLE:
                throttles |= _resume_throttle(record, values[0])
        except (ValueError, TypeError, AttributeError):
            continue
    return replace(history, throttles=Throttles(throttles))


def _resume_reassignment(record: ClusterChange, after: Any, before: Any) -> Reassignment:
    targets = {
        _parse_partition(name): Target(
            tuple(before[name]) if before.get(name) else None,
            tuple(replicas),
            frozenset(before.get(name) or ()) ^ frozenset(replicas),
        )
        for name, replicas in after.items()
    }
    return Reassignment(record.starts, targets, frozenset(targets), reported_at=record.at)


def _parse_partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _resume_throttle(record: ClusterChange, after: Any) -> dict[ThrottleKey, ThrottleHistory]:
    if record.topic is not None:
        owner = SettingOwner(SettingScope.TOPIC, record.topic)
    elif record.broker_id is not None:
        owner = SettingOwner(SettingScope.BROKER, str(record.broker_id))
    else:
        owner = SettingOwner(SettingScope.ALL_BROKERS, "")
    return {
        (owner, name): ThrottleHistory(record.starts, ((record.at, value),)) for name, value in after.items()
    }
