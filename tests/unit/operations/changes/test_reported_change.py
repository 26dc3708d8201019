"""Reported changes: what is accepted, and the message for each field that is not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleetgauge_core.contract import ClusterChange
from fleetgauge_operations.changes.plan.reported_change import (
    MAX_TITLE,
    ReportedChange,
    ReportedChangeError,
    build_reported_record,
)

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
CLUSTERS = {"orders": frozenset({("fleet", ""), ("region", "eu")})}
DEPLOY = ReportedChange("deploy", "orders 2.4", NOW, NOW, cluster_id="orders", author="ci")


def test_a_report_becomes_a_record_that_survives_the_topic() -> None:
    change = replace(DEPLOY, broker_id=2, ends=NOW + timedelta(hours=1), link="https://ci.example/2.4")
    record = build_reported_record(change, "id", "webhook:ci", CLUSTERS, NOW)
    assert (record.kind, record.phase, record.source) == ("deploy", "happened", "webhook:ci")
    assert (record.starts, record.ends, record.at) == (NOW, NOW + timedelta(hours=1), NOW)
    assert ClusterChange.decode(record.encode()) == record


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "roll"}, "kind: 'roll' is none of deploy, ticket, host_maintenance, other"),
        ({"title": " "}, "title: must not be blank"),
        ({"title": "x" * (MAX_TITLE + 1)}, "title: longer than 300 characters"),
        ({"title": "a\nb"}, "title: has a control character"),
        ({"author": "x" * 250}, "author: longer than 249 characters"),
        ({"link": "javascript:alert(1)"}, "link: must begin with http"),
        ({"link": "https://a b"}, "link: must begin with http"),
        ({"ends": NOW - timedelta(seconds=1)}, "to: 2026-03-02T09:59:59Z is before from"),
        (
            {"starts": NOW + timedelta(days=36), "ends": NOW + timedelta(days=36)},
            "from, to: more than 35 days",
        ),
        (
            {"starts": NOW - timedelta(days=36), "ends": NOW - timedelta(days=36)},
            "from: more than 35 days ago",
        ),
        ({"cluster_id": "nobody"}, "cluster: the fleet has no cluster 'nobody'"),
        ({"segment": "region", "segment_value": "eu"}, "cluster, segment: give one of them"),
        ({"cluster_id": None, "broker_id": 1}, "broker: needs the cluster"),
        ({"broker_id": -1}, "broker: must be from 0"),
        ({"broker_id": 2**31}, "broker: must be from 0"),
        (
            {"cluster_id": None, "segment": "region", "segment_value": "us"},
            "segment: no cluster is in region=us",
        ),
    ],
)
def test_a_field_that_cannot_be_accepted_is_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ReportedChangeError, match=message.replace("(", r"\(")):
        build_reported_record(replace(DEPLOY, **changed), "id", "command", CLUSTERS, NOW)


@pytest.mark.parametrize(("segment", "value"), [("fleet", ""), ("region", "eu")])
def test_a_segment_may_change(segment: str, value: str) -> None:
    change = replace(DEPLOY, cluster_id=None, segment=segment, segment_value=value)
    record = build_reported_record(change, "id", "command", CLUSTERS, NOW)
    assert (record.cluster_id, record.segment, record.segment_value) == (None, segment, value)
