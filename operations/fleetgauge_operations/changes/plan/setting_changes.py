"""Changes of settings by their own source: of one broker, of all brokers, of a topic.

A setting counts for the resource at which it is set. A default of all brokers that changes shows as the value
of every broker and topic that inherits it, and is one change. A setting that is set to the value that it
inherits has no effect, and is no change. Sensitive values cannot be seen, so they never change.
The settings of a topic are compared only with what the same broker said before, as long as it runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from fleetgauge_core.metadata import (
    ObservedSetting,
    ObservedSettings,
    SettingOrigin,
    SettingOwner,
    SettingScope,
)
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

#: Limits of the bandwidth of replication (KIP-73), and of moves between log directories (KIP-113).
THROTTLE_SETTINGS = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
)
#: Values of a throttle that limit nothing: no replica is listed; the rate's default, set explicitly.
UNLIMITED_VALUES = frozenset({"", "none", "9223372036854775807"})
_ABSENT = ObservedSetting(None, SettingOrigin.INHERITED, False)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of an owner; None if it was or is not set there."""

    owner: SettingOwner
    name: str
    starts: datetime
    ends: datetime
    before: str | None
    after: str | None


def find_setting_changes(before: KnownParts, after: KnownParts) -> Iterator[SettingChange]:
    """Yield the settings that were set, changed or removed at their owner, throttles included."""
    for owner, reading in sorted(after.settings.items()):
        earlier = before.settings.get(owner)
        if earlier is None or earlier.at == reading.at or earlier.value == reading.value:
            continue
        if owner.scope is SettingScope.TOPIC and _is_another_topic(before, after, owner.name):
            continue
        for name in sorted(_find_changed_names(earlier.value, reading.value)):
            yield SettingChange(
                owner,
                name,
                earlier.began_at,
                reading.at,
                _own_value(earlier.value.get(name, _ABSENT)),
                _own_value(reading.value.get(name, _ABSENT)),
            )


def _is_another_topic(before: KnownParts, after: KnownParts, name: str) -> bool:
    topics = [parts.topics.value.get(name) if parts.topics else None for parts in (before, after)]
    return len({topic.topic_id for topic in topics if topic}) > 1


def _find_changed_names(before: ObservedSettings, after: ObservedSettings) -> Iterator[str]:
    for name in before.keys() | after.keys():
        earlier, later = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if earlier != later and _is_own_change(earlier, later):
            yield name


def _is_own_change(before: ObservedSetting, after: ObservedSetting) -> bool:
    """Return whether the effective value changed, and by what is set at the owner itself."""
    if before.is_sensitive or after.is_sensitive or before.value == after.value:
        return False
    origins = {before.origin, after.origin}
    if SettingOrigin.OWN in origins:
        return True
    # The broker was started with another properties file, unless a default of all brokers hides or shows it.
    return SettingOrigin.FILE in origins and SettingOrigin.ALL_BROKERS not in origins


def _own_value(setting: ObservedSetting) -> str | None:
    is_own = setting.origin in (SettingOrigin.OWN, SettingOrigin.FILE)
    return setting.value if is_own else None


def describe_setting_changes(changes: Iterable[SettingChange]) -> Iterator[ObservedChange]:
    """Yield one change for each owner; throttles are not among them."""
    by_owner: dict[SettingOwner, list[SettingChange]] = {}
    for change in changes:
        if change.name not in THROTTLE_SETTINGS:
            by_owner.setdefault(change.owner, []).append(change)
    for owner, listed in by_owner.items():
        yield ObservedChange(
            ChangeKind.SETTING_CHANGED,
            listed[0].starts,
            listed[0].ends,
            broker_id=find_broker_id(owner),
            topic=find_topic(owner),
            before={change.name: change.before for change in listed},
            after={change.name: change.after for change in listed},
            evidence={"scope": owner.scope.value},
        )


def find_broker_id(owner: SettingOwner) -> int | None:
    """Return the broker that has the setting, if it is one."""
    return int(owner.name) if owner.scope is SettingScope.BROKER else None


def find_topic(owner: SettingOwner) -> str | None:
    """Return the topic that has the setting, if it is one."""
    return owner.name if owner.scope is SettingScope.TOPIC else None


def select_throttles(changes: Iterable[SettingChange]) -> Mapping[tuple[SettingOwner, str], SettingChange]:
    """Return the changes of throttles by owner and setting; a value that limits nothing is none."""
    limits = (
        replace(change, before=_find_limit(change.before), after=_find_limit(change.after))
        for change in changes
        if change.name in THROTTLE_SETTINGS
    )
    return {(change.owner, change.name): change for change in limits if change.before != change.after}


def _find_limit(value: str | None) -> str | None:
    return None if value in UNLIMITED_VALUES else value
