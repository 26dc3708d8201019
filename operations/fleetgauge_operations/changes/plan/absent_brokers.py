"""Brokers that are registered, but have been fenced for a long time.

They still are among the replicas of partitions, take new ones, and keep metadata.version from being raised.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

GONE_AFTER = timedelta(minutes=10)

#: When each fenced broker was first seen so, and whether it was reported.
Absences = Mapping[int, tuple[datetime, bool]]


def follow_absences(
    absences: Absences, after: KnownParts, gone_after: timedelta = GONE_AFTER
) -> tuple[Absences, tuple[ObservedChange, ...]]:
    """Return the absences by now, and the brokers that are gone or are not any more."""
    if not after.brokers:
        return absences, ()
    now = after.brokers.at
    fenced = {broker_id for broker_id, broker in after.brokers.value.items() if broker.is_fenced}
    changes = [
        ObservedChange(
            ChangeKind.BROKER_GONE,
            since,
            now,
            broker_id,
            before={"fenced": True},
            after={"fenced": False, "registered": broker_id in after.brokers.value},
            phase=ChangePhase.ENDED,
        )
        for broker_id, (since, is_reported) in sorted(absences.items())
        if is_reported and broker_id not in fenced
    ]
    continued: dict[int, tuple[datetime, bool]] = {}
    for broker_id in sorted(fenced):
        since, is_reported = absences.get(broker_id, (now, False))
        if not is_reported and now - since >= gone_after:
            is_reported = True
            changes.append(
                ObservedChange(
                    ChangeKind.BROKER_GONE,
                    since,
                    None,
                    broker_id,
                    after={"fenced": True, "registered": True},
                    evidence={"fenced_s": int((now - since).total_seconds())},
                    phase=ChangePhase.BEGUN,
                )
            )
        continued[broker_id] = since, is_reported
    return continued, tuple(changes)
