"""The state of the watch, restored from its findings and state records."""

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
from tests.unit.operations.watch.sample_findings import BROKER, NOON, cleared, opened


def _incident(minutes: int) -> list[Finding]:
    """Return the findings of a broker that is suspect, down and recovers, so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    suspect = opened(BROKER, HealthState.SUSPECT, HealthState.HEALTHY, at)
    return [suspect, opened(at=at + timedelta(seconds=5)), cleared(at=at + timedelta(seconds=30))]


FINDINGS = [*_incident(0), *_incident(1)]


def _delivered_until(finding: Finding) -> DeliveryRecord:
    return DeliveryRecord(notifier="n", event_id=finding.event.event_id, at=finding.event.at)


#: Of a notifier that was configured before the first finding.
INITIAL = DeliveryRecord(notifier="n")


@pytest.mark.parametrize(
    ("record", "undelivered"),
    [
        (_delivered_until(FINDINGS[1]), [FINDINGS[2], FINDINGS[4], FINDINGS[5]]),
        (_delivered_until(FINDINGS[5]), []),
        (INITIAL, [FINDINGS[1], FINDINGS[2], FINDINGS[4], FINDINGS[5]]),
        (
            DeliveryRecord(notifier="n", event_id="never stored", at=FINDINGS[2].event.at),
            [FINDINGS[4], FINDINGS[5]],
        ),
        (
            _delivered_until(FINDINGS[4]).model_copy(update={"owes": (FINDINGS[1].event.event_id,)}),
            [FINDINGS[1], FINDINGS[5]],
        ),
        (_delivered_until(FINDINGS[5]).model_copy(update={"owes": ("expired",)}), []),
    ],
    ids=["some", "all", "none", "unknown event", "one postponed", "postponed event expired"],
)
def test_undelivered_are_alerts_and_their_ends_after_the_last_delivered_event(
    record: DeliveryRecord, undelivered: Sequence[Finding]
) -> None:
    assert list(record.select_undelivered(FINDINGS)) == undelivered


def test_the_latest_record_of_a_key_counts() -> None:
    records = [
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="a", took=((1, 2),)),
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="b", took=()),
        _delivered_until(FINDINGS[1]),
        LatencyBaselineRecord(cluster="orders", broker=3, vantage="a", took=((3, 4), (5, 6))),
        _delivered_until(FINDINGS[2]),
    ]
    assert len({record.key for record in records}) == 3
    restored = restore_state((), [record.model_dump_json().encode() for record in records])
    assert restored.histories == {
        LatencyHistoryKey("orders", 3, "a"): (LatencyQuantiles(3, 4), LatencyQuantiles(5, 6)),
        LatencyHistoryKey("orders", 3, "b"): (),
    }
    assert restored.deliveries == {"n": _delivered_until(FINDINGS[2])}


def test_burn_minutes_are_joined_and_a_key_is_reused_after_three_days() -> None:
    def hour(since_noon: int, *minutes: int) -> BurnRecord:
        rows = tuple((minute, False, 300, 299, 3, 3) for minute in minutes)
        return BurnRecord(cluster="orders", hour=NOON + timedelta(hours=since_noon), minutes=rows)

    records = [hour(0, 58), hour(0, 58, 59), hour(1, 0), hour(74, 5)]
    assert records[0].key == records[1].key == records[3].key != records[2].key
    assert len({hour(since_noon).key for since_noon in range(73)}) == 73
    restored = restore_state((), [record.model_dump_json().encode() for record in records[:3]])
    times = [NOON + timedelta(minutes=minute) for minute in (58, 59, 60)]
    assert restored.burn_minutes == {"orders": [BurnMinute(time, False, 300, 299, 3, 3) for time in times]}
    restored = restore_state((), [record.model_dump_json().encode() for record in records])
    restored_times = [burn_minute.minute for burn_minute in restored.burn_minutes["orders"]]
    assert restored_times == [NOON + timedelta(hours=74, minutes=5), times[2]]


@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"{}", b'{"kind": "unknown"}', b'{"kind": "told", "notifier": 1}']
)
def test_an_invalid_record_is_skipped(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fleetgauge.watch"):
        restored = restore_state((), [value, INITIAL.model_dump_json().encode()])
    assert restored.deliveries == {"n": INITIAL}
    assert "skipped a state record that is invalid" in caplog.text
