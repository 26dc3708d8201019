"""How recovery findings are notified, stored and read back."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.tables import RECOVERY_FINDINGS
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.recovery.readiness.finding_notification import (
    finding_notification,
    finding_row,
    latest_findings,
)
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    ReadinessCondition,
)
from fleetgauge_operations.recovery.readiness.plan.findings import RecoveryFinding

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BEHIND = ReadinessCondition(
    ConditionKey(ConditionKind.MIRROR_BEHIND, "north", "south-all"),
    "mirror from north to south-all lags 90 s behind, more than the RPO of 60 s",
    ("a failover of north now would lose at most 12 records",),
    {"behind_s": 90.0},
)
OPENS = RecoveryFinding(BEHIND, NOON, opens=True)
CLOSES = RecoveryFinding(BEHIND, NOON + timedelta(minutes=5), opens=False)


def build_notifier(kind: str, **settings: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example:9093/", **settings})


def build_body(finding: RecoveryFinding, kind: str) -> Any:
    return Receiver(build_notifier(kind)).body([finding_notification(finding, "https://dash.example/")], NOON)


def test_a_webhook_is_notified_of_opening_and_closing() -> None:
    opens, closed = build_body(OPENS, "webhook"), build_body(CLOSES, "webhook")
    assert (opens["status"], opens["severity"], opens["kind"]) == ("firing", "page", "MIRROR_BEHIND")
    assert opens["words"] == [BEHIND.summary, *BEHIND.details]
    assert (opens["page"], opens["runbook"]) == ("https://dash.example/recovery", "docs/runbooks/recovery.md")
    assert (closed["status"], closed["fingerprint"]) == ("resolved", opens["fingerprint"])
    assert closed["id"] != opens["id"]
    assert closed["summary"] == f"resolved: {BEHIND.summary}"


def test_the_labels_of_an_alert_are_stable() -> None:
    (opens,), closed = build_body(OPENS, "alertmanager"), build_body(CLOSES, "alertmanager")
    assert opens["labels"] == {
        "alertname": "MIRROR_BEHIND",
        "cluster": "north",
        "other": "south-all",
        "severity": "page",
    }
    assert opens["labels"] in [alert["labels"] for alert in closed]


def test_a_slack_message_has_the_details() -> None:
    assert build_body(OPENS, "slack")["text"].split("\n")[1:] == [
        "2026-03-02 12:00:00 UTC",
        BEHIND.details[0],
    ]


def test_latest_findings_are_restored_from_rows() -> None:
    stale = RecoveryFinding(
        ReadinessCondition(ConditionKey(ConditionKind.PRIMARY_TWO, "", subject="billing"), "two"),
        NOON,
        opens=True,
    )
    rows = [finding_row(finding) for finding in (CLOSES, OPENS, stale)]
    assert all(set(row) == set(RECOVERY_FINDINGS.column_names) for row in rows)
    newer = rows[0] | {"kind": "OF_A_NEWER_VERSION", "fingerprint": "f"}
    assert sorted(latest_findings([*rows, newer]), key=lambda finding: finding.opens) == [CLOSES, stale]


def test_evidence_is_json_with_the_details() -> None:
    assert json.loads(finding_row(OPENS)["evidence"]) == {"words": list(BEHIND.details), "behind_s": 90.0}
