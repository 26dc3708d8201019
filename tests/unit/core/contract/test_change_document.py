"""Changes as JSON documents, and back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.change_document import change_document, read_change_document

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
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
        read = read_change_document(change_document(change))
        assert replace(read, event_id="event") == change
        assert read == read_change_document(change_document(change))


def test_what_is_not_given_follows_from_the_rest() -> None:
    moment = {"kind": "deploy", "cluster": "orders", "starts": "2026-03-02T13:00:00+01:00"}
    lasting, ended = (read_change_document(moment | more) for more in ({}, {"ends": "2026-03-02T12:30:00Z"}))
    assert (lasting.phase, lasting.at, lasting.source, lasting.evidence) == ("begun", NOON, "file", "{}")
    assert (ended.phase, ended.at) == ("ended", NOON + timedelta(minutes=30))
    assert len({lasting.change_id, ended.change_id, lasting.event_id, ended.event_id}) == 4
