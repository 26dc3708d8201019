"""Settings by their own source, and throttles from when they are set until they are cleared."""

import pytest

from fleetgauge_core.metadata import (
    SettingOrigin,
)
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from tests.unit.operations.changes.looks import (
    ALL,
    BROKER_1,
    QUIET,
    TOPIC,
    at,
    ended,
    follow,
    inherited,
    kinds,
    look,
    only,
    opened,
    setting,
    with_setting,
)


def test_settings_change_at_their_owner_alone() -> None:
    own = look(15, settings=with_setting(TOPIC, retention__ms=setting("1000")))
    change = only(follow(own))
    assert (change.kind, change.topic) == (ChangeKind.SETTING_CHANGED, "orders")
    assert (change.before, change.after) == ({"retention.ms": None}, {"retention.ms": "1000"})
    shared = {
        **with_setting(ALL, **{"log__retention__ms": setting("5")}),
        TOPIC: {**QUIET.settings[TOPIC], "retention.ms": inherited("5")},
        BROKER_1: {
            **QUIET.settings[BROKER_1],
            "log.retention.ms": setting("5", SettingOrigin.ALL_BROKERS),
        },
    }
    change = only(follow(look(15, settings=shared)))
    assert (change.broker_id, change.topic, change.after) == (None, None, {"log.retention.ms": "5"})


@pytest.mark.parametrize(
    "settings",
    [
        # Set to the value that it inherits.
        with_setting(TOPIC, cleanup__policy=setting("delete")),
        # Sensitive: it reads as null, whatever it is.
        with_setting(BROKER_1, ssl__keystore__password=setting("x", sensitive=True)),
        # Inherited from another broker that was asked.
        with_setting(TOPIC, retention__ms=inherited("1")),
        # A topic that was deleted takes its settings with it.
        {owner: values for owner, values in QUIET.settings.items() if owner != TOPIC},
    ],
)
def test_what_is_no_change_of_a_setting(settings: dict[object, object]) -> None:
    assert not follow(look(15, settings=settings))


def test_the_settings_of_a_topic_are_compared_only_with_what_the_same_broker_said_before() -> None:
    settings = with_setting(TOPIC, retention__ms=setting("1000"))
    assert not follow(
        look(15, settings=settings, asked_broker=2), look(30, settings=settings, asked_broker=2)
    )
    # A broker that has restarted may bring back the settings of a deleted topic.
    assert ChangeKind.SETTING_CHANGED not in kinds(
        follow((look(15, settings=settings), [ended(5, 1), opened(10, 1)]), look(30, settings=settings))
    )


def test_a_throttle_of_a_topic_that_is_cleared_while_another_broker_is_asked_ends() -> None:
    throttled = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("*")})
    changes = follow(look(15, settings=throttled), look(30, asked_broker=2))
    assert [(change.kind, change.phase) for change in changes] == [
        (ChangeKind.THROTTLE, ChangePhase.BEGUN),
        (ChangeKind.THROTTLE, ChangePhase.ENDED),
    ]


def test_another_properties_file_is_a_change_of_its_broker() -> None:
    change = only(
        follow(look(15, settings=with_setting(BROKER_1, log__retention__ms=setting("1", SettingOrigin.FILE))))
    )
    assert (change.broker_id, change.before, change.after) == (
        1,
        {"log.retention.ms": "604800000"},
        {"log.retention.ms": "1"},
    )


RATE = "leader__replication__throttled__rate"


def throttle(value: str | None) -> dict[object, object]:
    return with_setting(BROKER_1, **{RATE: setting(value) if value else inherited("9223372036854775807")})


def test_a_throttle_lasts_from_when_it_is_set_until_it_is_cleared() -> None:
    changes = follow(
        look(15, settings=throttle("10")),
        look(30, settings=throttle("20")),
        look(45, settings=throttle(None)),
    )
    assert [(change.kind, change.phase, change.starts) for change in changes] == [
        (ChangeKind.THROTTLE, ChangePhase.BEGUN, at(0)),
        (ChangeKind.THROTTLE, ChangePhase.PROGRESS, at(0)),
        (ChangeKind.THROTTLE, ChangePhase.ENDED, at(0)),
    ]
    assert [list(change.after.values()) for change in changes] == [["10"], ["20"], [None]]
    assert changes[-1].ends == at(45)


def test_a_throttle_that_was_set_at_the_first_look_is_found_when_it_is_cleared() -> None:
    history, changes = compare(ObservedHistory(), look(0, settings=throttle("10")))
    assert not changes
    _, changes = compare(history, look(15, settings=throttle(None)))
    assert only(list(changes)).phase is ChangePhase.ENDED


def test_two_tools_that_undo_each_other_fight() -> None:
    values = ["10", None, "10", None, "10"]
    changes = follow(*(look(15 * (n + 1), settings=throttle(value)) for n, value in enumerate(values)))
    fights = [change for change in changes if change.kind is ChangeKind.THROTTLE_FIGHT]
    assert len(fights) == 1
    assert fights[0].evidence["values"] == values


def test_a_tool_that_moves_two_batches_does_not_fight() -> None:
    values = ["10", None, "10", None]
    changes = follow(*(look(60 * (n + 1), settings=throttle(value)) for n, value in enumerate(values)))
    assert ChangeKind.THROTTLE_FIGHT not in kinds(changes)


@pytest.mark.parametrize("value", ["9223372036854775807"])
def test_a_throttle_that_limits_nothing_is_none(value: str) -> None:
    assert not follow(look(15, settings=throttle(value)), look(30, settings=throttle(None)))
    listed = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("")})
    assert not follow(look(15, settings=listed), look(30))


def test_a_throttle_ends_with_its_topic() -> None:
    throttled = with_setting(TOPIC, **{"leader__replication__throttled__replicas": setting("*")})
    deleted = {owner: values for owner, values in throttled.items() if owner != TOPIC}
    changes = follow(look(15, settings=throttled), look(30, topics={}, settings=deleted))
    ends = [change for change in changes if change.phase is ChangePhase.ENDED]
    assert [(change.kind, change.topic, change.evidence["gone"]) for change in ends] == [
        (ChangeKind.THROTTLE, "orders", True)
    ]
