"""How findings are told and recalled, and that none is lost while a receiver is out."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.tables import RECOVERY_FINDINGS
from fleetgauge_operations.notify.notification import message
from fleetgauge_operations.recovery.readiness.plan.conditions import Condition, Kind, Whom
from fleetgauge_operations.recovery.readiness.plan.findings import Finding
from fleetgauge_operations.recovery.readiness.telling import Tray, bulletin_of, last_told, row_of
from tests.receiver import Receiver

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BEHIND = Condition(
    Whom(Kind.MIRROR_BEHIND, "north", "south-all"),
    "the mirror from north to south-all is 90 s behind, beyond 60 s",
    ("at most 12 records would be lost with north now",),
    {"behind_s": 90.0},
)
OPENS = Finding(BEHIND, NOON, opens=True)
OVER = Finding(BEHIND, NOON + timedelta(minutes=5), opens=False)


def notifier(kind: str, **more: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example:9093/", **more})


def of(finding: Finding, kind: str) -> Any:
    return message(notifier(kind), bulletin_of(finding, "https://dash.example/"))


def test_a_webhook_is_told_when_it_begins_and_when_it_is_over() -> None:
    opens, over = of(OPENS, "webhook"), of(OVER, "webhook")
    assert (opens["status"], opens["severity"], opens["kind"]) == ("firing", "page", "MIRROR_BEHIND")
    assert opens["words"] == [BEHIND.summary, *BEHIND.words]
    assert (opens["page"], opens["runbook"]) == ("https://dash.example/recovery", "docs/runbooks/recovery.md")
    assert (over["status"], over["fingerprint"]) == ("resolved", opens["fingerprint"])
    assert over["id"] != opens["id"]
    assert over["summary"] == f"over: {BEHIND.summary}"


def test_an_alert_has_labels_that_stay_as_they_are() -> None:
    (opens,), over = of(OPENS, "alertmanager"), of(OVER, "alertmanager")
    assert opens["labels"] == {
        "alertname": "MIRROR_BEHIND",
        "cluster": "north",
        "other": "south-all",
        "severity": "page",
    }
    assert opens["labels"] in [one["labels"] for one in over]


def test_a_channel_reads_what_would_be_lost() -> None:
    assert of(OPENS, "slack")["text"].split("\n")[1:] == ["2026-03-02 12:00:00 UTC", BEHIND.words[0]]


def test_what_was_told_is_recalled_from_its_rows() -> None:
    stale = Finding(Condition(Whom(Kind.PRIMARY_TWO, "", subject="billing"), "two"), NOON, opens=True)
    rows = [row_of(one) for one in (OVER, OPENS, stale)]
    assert all(set(row) == set(RECOVERY_FINDINGS.names) for row in rows)
    newer = rows[0] | {"kind": "OF_A_NEWER_VERSION", "fingerprint": "f"}
    assert sorted(last_told([*rows, newer]), key=lambda one: one.opens) == [OVER, stale]


def test_what_a_receiver_does_not_take_now_it_gets_with_the_next_turn_in_order() -> None:
    with Receiver().listening() as out, Receiver().listening() as there:
        tray = Tray([notifier("webhook", url=out.url), notifier("webhook", url=there.url)], None)
        tray.put(OPENS, NOON)
        tray.put(OVER, NOON)
        out.answers += [503, 503]
        tray.send(NOON)
        assert [post["status"] for post in there.bodies] == ["firing", "resolved"]
        assert len(out.posts) == 1
        tray.send(NOON)
        tray.send(NOON)
        assert [post["status"] for post in out.bodies] == ["firing", "firing", "firing", "resolved"]
        assert len(there.posts) == 2


def test_what_nobody_takes_for_an_hour_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with Receiver().listening() as out:
        out.answers += [503, 503]
        tray = Tray([notifier("webhook", url=out.url), notifier("heartbeat")], None)
        tray.put(OPENS, NOON)
        tray.send(NOON)
        tray.send(NOON + timedelta(minutes=61))
        tray.send(NOON + timedelta(minutes=62))
        assert len(out.posts) == 2
    assert "given up" in caplog.text


def test_some_are_told_by_kind() -> None:
    with Receiver().listening() as there:
        tray = Tray([notifier("webhook", url=there.url)], None)
        tray.put(OPENS, NOON, kinds=("alertmanager",))
        tray.send(NOON)
        assert there.posts == []


def test_evidence_is_json_with_the_words() -> None:
    assert json.loads(row_of(OPENS)["evidence"]) == {"words": list(BEHIND.words), "behind_s": 90.0}
