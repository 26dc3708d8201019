import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from fleetgauge_core.detection import (
    Finding,
    HealthState,
    LatencyHistoryKey,
    LatencyQuantiles,
)
from fleetgauge_core.slo.burn import BurnMinute
from fleetgauge_operations.watch.state_store import (
    BurnRecord,
    DeliveryRecord,
    LatencyBaselineRecord,
    restore_state,
)
from tests.unit.operations.watch.sample_findings import BROKER, NOON, cleared, named


def _at(minutes: int) -> list[Finding]:
    """Doubted, named and cleared, so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    doubted = named(BROKER, HealthState.SUSPECT, HealthState.HEALTHY, at)
    return [doubted, named(at=at + timedelta(seconds=5)), cleared(at=at + timedelta(seconds=30))]


STORY = [*_at(0), *_at(1)]


def _told(one: Finding) -> DeliveryRecord:
    return DeliveryRecord(notifier="n", event_id=one.event.event_id, at=one.event.at)


#: Of a notifier that was there before anything was found.
NEW = DeliveryRecord(notifier="n")


@pytest.mark.parametrize(
    ("told", "owed"),
    [
        (_told(STORY[1]), [STORY[2], STORY[4], STORY[5]]),
        (_told(STORY[5]), []),
        (NEW, [STORY[1], STORY[2], STORY[4], STORY[5]]),
        (DeliveryRecord(notifier="n", event_id="never stored", at=STORY[2].event.at), [STORY[4], STORY[5]]),
        (_told(STORY[4]).model_copy(update={"owes": (STORY[1].event.event_id,)}), [STORY[1], STORY[5]]),
        (_told(STORY[5]).model_copy(update={"owes": ("expired",)}), []),
    ],
    ids=["in the middle", "all", "nothing", "an event that nobody has", "one waits", "one waited too long"],
)
def test_owed_is_what_was_named_and_cleared_after_what_was_told(
    told: DeliveryRecord, owed: Sequence[Finding]
) -> None:
    assert list(told.owed(STORY)) == owed


def test_the_latest_note_of_a_key_counts() -> None:
    notes = [
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="a", took=((1, 2),)),
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="b", took=()),
        _told(STORY[1]),
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="a", took=((3, 4), (5, 6))),
        _told(STORY[2]),
    ]
    assert len({one.key for one in notes}) == 3
    found = restore_state((), [one.model_dump_json().encode() for one in notes])
    assert found.histories == {
        LatencyHistoryKey("orders", 3, "a"): (LatencyQuantiles(3, 4), LatencyQuantiles(5, 6)),
        LatencyHistoryKey("orders", 3, "b"): (),
    }
    assert found.told == {"n": _told(STORY[2])}


def test_hours_of_minutes_are_put_together_and_a_slot_is_taken_again_after_three_days() -> None:
    def hour(since_noon: int, *minutes: int) -> BurnRecord:
        told = tuple((minute, False, 300, 299, 3, 3) for minute in minutes)
        return BurnRecord(cluster="orders", hour=NOON + timedelta(hours=since_noon), minutes=told)

    notes = [hour(0, 58), hour(0, 58, 59), hour(1, 0), hour(74, 5)]
    assert notes[0].key == notes[1].key == notes[3].key != notes[2].key
    assert len({hour(since).key for since in range(73)}) == 73
    found = restore_state((), [one.model_dump_json().encode() for one in notes[:3]])
    at = [NOON + timedelta(minutes=minute) for minute in (58, 59, 60)]
    assert found.minutes == {"orders": [BurnMinute(one, False, 300, 299, 3, 3) for one in at]}
    found = restore_state((), [one.model_dump_json().encode() for one in notes])
    assert [one.minute for one in found.minutes["orders"]] == [NOON + timedelta(hours=74, minutes=5), at[2]]


@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"{}", b'{"kind": "dreamt"}', b'{"kind": "told", "notifier": 1}']
)
def test_what_cannot_be_read_is_passed_over(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fleetgauge.watch"):
        found = restore_state((), [value, NEW.model_dump_json().encode()])
    assert found.told == {"n": NEW}
    assert "a note of an earlier watch was passed over" in caplog.text
