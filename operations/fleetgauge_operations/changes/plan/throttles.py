"""Throttles of replication, from when they are set until they are cleared, and fights about them.

Two tools fight about a throttle when its value returns to an earlier one again and again within minutes: each
undoes what the other one sets. A single tool that moves data in batches sets and clears it, too, but not as
often.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleetgauge_core.metadata import SettingOrigin, SettingOwner, SettingScope
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange
from fleetgauge_operations.changes.plan.setting_changes import (
    THROTTLE_SETTINGS,
    UNLIMITED_VALUES,
    SettingChange,
    find_broker_id,
    find_topic,
)

_FIGHT_WITHIN = timedelta(minutes=5)
#: How often a value returns within that time.
_FIGHT_RETURNS = 3

ThrottleKey = tuple[SettingOwner, str]


@dataclass(frozen=True, slots=True)
class ThrottleHistory:
    """Since when a throttle is set (None: cleared), its latest values, and when a fight was reported."""

    starts: datetime | None
    values: tuple[tuple[datetime, str | None], ...] = ()
    fight_at: datetime | None = None

    def is_past_at(self, now: datetime) -> bool:
        """Return whether it is cleared, and has been for longer than a fight takes."""
        return self.starts is None and now - self.values[-1][0] > _FIGHT_WITHIN


@dataclass(frozen=True, slots=True)
class Throttles:
    """The throttles that are set, or were a short while ago."""

    histories: Mapping[ThrottleKey, ThrottleHistory] = field(default_factory=dict)


def follow_throttles(
    throttles: Throttles, changes: Mapping[ThrottleKey, SettingChange], after: KnownParts
) -> tuple[Throttles, tuple[ObservedChange, ...]]:
    """Return the throttles by now, and those that were set, changed, cleared or fought about."""
    histories = dict(throttles.histories)
    observed: list[ObservedChange] = []
    present = dict(_find_set(after))
    for key, (read_at, value) in present.items():
        # One that was set before the first look began then, as far as is known.
        if key not in changes and (key not in histories or histories[key].starts is None):
            histories[key] = ThrottleHistory(read_at, ((read_at, value),))
    for key, change in sorted(changes.items()):
        histories[key], changed = _follow(histories.get(key, ThrottleHistory(None)), change)
        observed += changed
    for key, history in sorted(histories.items(), key=lambda entry: entry[0]):
        if history.starts and key not in present and _is_known(key[0], after):
            del histories[key]
            observed.append(_describe_lost(*key, history, after))
        elif after.looked_at and history.is_past_at(after.looked_at):
            del histories[key]
    return Throttles(histories), tuple(observed)


def _find_set(parts: KnownParts) -> Iterator[tuple[ThrottleKey, tuple[datetime, str | None]]]:
    for owner, reading in parts.settings.items():
        for name in THROTTLE_SETTINGS & reading.value.keys():
            setting = reading.value[name]
            if setting.origin is SettingOrigin.OWN and setting.value not in UNLIMITED_VALUES:
                yield (owner, name), (reading.at, setting.value)


def _is_known(owner: SettingOwner, parts: KnownParts) -> bool:
    """Return whether the settings of an owner were read, or it is known to be gone."""
    if owner in parts.settings:
        return True
    if owner.scope is SettingScope.TOPIC:
        return parts.topics is not None and owner.name not in parts.topics.value
    if owner.scope is SettingScope.BROKER:
        return parts.brokers is not None and int(owner.name) not in parts.brokers.value
    return False


def _follow(history: ThrottleHistory, change: SettingChange) -> tuple[ThrottleHistory, list[ObservedChange]]:
    recent = [entry for entry in history.values if change.ends - entry[0] <= _FIGHT_WITHIN]
    values = (*(recent or history.values[-1:]), (change.ends, change.after))
    observed = [_describe(change, history)]
    starts = None if change.after is None else history.starts or change.starts
    history = replace(history, starts=starts, values=values)
    if _is_fight(history, change.ends):
        observed.append(_describe_fight(change, history))
        history = replace(history, fight_at=change.ends)
    return history, observed


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
