"""Changes as JSON documents, and back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleetgauge_core.contract import ClusterChange, RecordDecodeError
from fleetgauge_core.contract.change_document import change_document, read_change_document

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=9)
CHANGE = ClusterChange(
    "event",
    "change",
    "orders",
    "throttle",
    "ended",
    NOON + timedelta(minutes=9),
    NOON,
    NOON + timedelta(minutes=5),
    "observer",
    broker_id=2,
    topic="t",
    before='{"rate":null}',
    after='{"rate":"1000"}',
    evidence='{"owner":"unknown"}',
)


def test_what_is_listed_can_be_read_again() -> None:
    reported = replace(
        CHANGE, cluster_id=None, broker_id=None, segment="region", segment_value="eu", title="x", ends=None
    )
    for change in (CHANGE, reported):
        read = read_change_document(change_document(change), NOON)
        assert replace(read, event_id="event") == change
        assert read == read_change_document(change_document(change), NOON)


def test_what_is_not_given_follows_from_the_rest() -> None:
    moment = {"kind": "deploy", "cluster": "orders", "starts": "2026-03-02T13:00:00+01:00"}
    lasting, ended = (
        read_change_document(moment | more, LATER) for more in ({}, {"ends": "2026-03-02T12:30:00Z"})
    )
    assert (lasting.phase, lasting.at, lasting.source, lasting.evidence) == ("begun", LATER, "file", "{}")
    assert (ended.phase, ended.ends) == ("ended", NOON + timedelta(minutes=30))
    assert len({lasting.change_id, ended.change_id, lasting.event_id, ended.event_id}) == 4


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"starts": datetime(1, 1, 1, tzinfo=UTC)}, "starts: is outside of the years 1970 to 2200"),
        ({"ends": datetime(9999, 12, 31, tzinfo=UTC)}, "ends: is outside of the years 1970 to 2200"),
        ({"at": datetime(2200, 1, 1, tzinfo=UTC)}, "at: is outside of the years"),
        ({"ends": NOON - timedelta(seconds=1)}, "ends: is before starts"),
        ({"evidence": '{"a":' * 25 + "1" + "}" * 25}, "evidence: is nested deeper than 20 levels"),
        ({"before": "[" * 100 + "]" * 100}, "before: is nested deeper than 20 levels"),
        ({"after": "[" * 60_000}, "after: is not JSON"),
    ],
)
def test_a_record_that_not_everybody_could_use_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordDecodeError, match=reason):
        ClusterChange.decode(replace(CHANGE, **changed).encode())


def test_a_nested_value_of_a_real_change_is_accepted() -> None:
    nested = replace(CHANGE, evidence='{"a":' * 15 + "1" + "}" * 15)
    assert ClusterChange.decode(nested.encode()) == nested
