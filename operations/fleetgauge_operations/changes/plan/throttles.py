"""Throttles of replication, from when they are set until they are cleared, and fights about them.

Two tools fight about a throttle when its value returns to an earlier one again and again: each undoes what
the other one sets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetgauge_core.metadata import SettingOrigin, SettingOwner
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange
from fleetgauge_operations.changes.plan.setting_changes import (
    THROTTLE_SETTINGS,
    SettingChange,
    find_broker_id,
    find_topic,
)

_FIGHT_WITHIN = timedelta(minutes=10)
#: How often a value returns within that time.
_FIGHT_RETURNS = 2

ThrottleKey = tuple[SettingOwner, str]


@dataclass(frozen=True, slots=True)
class ThrottleHistory:
    """Since when a throttle is set (None: cleared), its latest values, and when a fight was reported."""

    starts: datetime | None
    values: tuple[tuple[datetime, str | None], ...] = ()
    fight_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Throttles:
    """All throttles that were ever seen set; None before the first look at settings."""

    histories: Mapping[ThrottleKey, ThrottleHistory] = field(default_factory=dict)


def follow_throttles(
    throttles: Throttles, changes: Mapping[ThrottleKey, SettingChange], after: KnownParts
) -> tuple[Throttles, tuple[ObservedChange, ...]]:
    """Return the throttles by now, and those that were set, changed, cleared or fought about."""
    histories = dict(throttles.histories)
    observed: list[ObservedChange] = []
    for key, read_at, value in _find_set(after):
        # One that was set before the first look began then, as far as is known.
        if key not in histories and key not in changes:
            histories[key] = ThrottleHistory(read_at, ((read_at, value),))
    for key, change in sorted(changes.items()):
        history = histories.get(key, ThrottleHistory(None))
        values = (
            tuple(entry for entry in history.values if change.ends - entry[0] <= _FIGHT_WITHIN)
            or history.values[-1:]
        )
        history = ThrottleHistory(history.starts, (*values, (change.ends, change.after)), history.fight_at)
        observed.append(_describe(change, history))
        if _is_fight(history, change.ends):
            observed.append(_describe_fight(change, history))
            history = ThrottleHistory(history.starts, history.values, change.ends)
        starts = None if change.after is None else history.starts or change.starts
        histories[key] = ThrottleHistory(starts, history.values, history.fight_at)
    still_set = {key for key, _, _ in _find_set(after)}
    gone = [key for key, history in histories.items() if history.starts and key not in still_set]
    for owner, name in sorted(gone):
        history = histories.pop((owner, name))
        observed.append(_describe_lost(owner, name, history, after))
    return Throttles(histories), tuple(observed)


def _find_set(parts: KnownParts) -> Iterator[tuple[ThrottleKey, datetime, str | None]]:
    for owner, reading in parts.settings.items():
        for name in THROTTLE_SETTINGS & reading.value.keys():
            if reading.value[name].origin is SettingOrigin.OWN:
                yield (owner, name), reading.at, reading.value[name].value


def _describe(change: SettingChange, history: ThrottleHistory) -> ObservedChange:
    if change.after is None:
        phase = ChangePhase.ENDED
    else:
        phase = ChangePhase.PROGRESS if history.starts else ChangePhase.BEGUN
    return ObservedChange(
        ChangeKind.THROTTLE,
        history.starts or change.starts,
        change.ends if phase is ChangePhase.ENDED else None,
        broker_id=find_broker_id(change.owner),
        topic=find_topic(change.owner),
        before={change.name: change.before},
        after={change.name: change.after},
        evidence={"scope": change.owner.scope.value},
        phase=phase,
        key=change.name,
    )


def _is_fight(history: ThrottleHistory, now: datetime) -> bool:
    if history.fight_at and now - history.fight_at < _FIGHT_WITHIN:
        return False
    values = [value for _, value in history.values]
    returns = sum(value in values[:position] for position, value in enumerate(values))
    return returns >= _FIGHT_RETURNS


def _describe_fight(change: SettingChange, history: ThrottleHistory) -> ObservedChange:
    return ObservedChange(
        ChangeKind.THROTTLE_FIGHT,
        history.values[0][0],
        change.ends,
        broker_id=find_broker_id(change.owner),
        topic=find_topic(change.owner),
        before={change.name: change.before},
        after={change.name: change.after},
        evidence={"values": [value for _, value in history.values], "scope": change.owner.scope.value},
        key=change.name,
    )


def _describe_lost(
    owner: SettingOwner, name: str, history: ThrottleHistory, after: KnownParts
) -> ObservedChange:
    """Describe the end of a throttle that nobody saw cleared: its topic or broker may be gone."""
    reading = after.settings.get(owner) or (after.topics if find_topic(owner) else after.brokers)
    starts = history.starts or history.values[-1][0]
    return ObservedChange(
        ChangeKind.THROTTLE,
        starts,
        reading.at if reading else starts,
        broker_id=find_broker_id(owner),
        topic=find_topic(owner),
        before={name: history.values[-1][1]},
        after={name: None},
        evidence={"scope": owner.scope.value, "gone": owner not in after.settings},
        phase=ChangePhase.ENDED,
        key=name,
    )
