"""The notification of a case in the format of each kind of receiver."""

from dataclasses import replace
from typing import Any

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.notify.outboxes import SENT_ONCE
from fleetgauge_operations.notify.receivers import Receiver
from tests.unit.operations.mitigation.simulated_cluster import NOON

CASE = ActionCase(
    "c1", ActionKind.DEMOTE, "orders", 2, "zone-2", "ann", "DEGRADED", NOON, ActionOutcome.REFUSED
)
EXPLANATIONS = ("broker 3 is <fenced>", "a reassignment is in progress: t-1")
REFUSED = CaseNotification(CASE, ActionOutcome.REFUSED, EXPLANATIONS, NOON)
FAILED = CaseNotification(
    CASE, ActionOutcome.FAILED, ("after 5 s: broker 2 still leads 1 of its partitions",), NOON
)
UNDONE = CaseNotification(CASE, ActionOutcome.UNDONE, (), NOON, is_undo=True)


def build_notifier(kind: str, **settings: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example:9093/", **settings})


def format_body(notification: CaseNotification, kind: str, **settings: Any) -> Any:
    """Return the body of the POST to a receiver of that kind, parsed from JSON."""
    return Receiver(build_notifier(kind, **settings), SENT_ONCE).body([notification.notification], NOON)


def test_a_webhook_is_sent_every_refusal() -> None:
    body = format_body(REFUSED, "webhook")
    assert (body["status"], body["severity"], body["kind"]) == ("firing", "ticket", "MITIGATION_REFUSED")
    assert (body["cluster"], body["broker"], body["words"]) == ("orders", 2, list(EXPLANATIONS))
    assert body["summary"] == "orders: demote of broker 2 refused: broker 3 is <fenced>"


def test_a_failure_pages_and_its_undo_resolves_the_page() -> None:
    failed, undone = format_body(FAILED, "webhook"), format_body(UNDONE, "webhook")
    assert (failed["status"], failed["severity"]) == ("firing", "page")
    assert (undone["status"], undone["fingerprint"]) == ("resolved", failed["fingerprint"])
    assert undone["summary"] == "orders: demote of broker 2 undone"
    refused_undo = CaseNotification(CASE, ActionOutcome.REFUSED, EXPLANATIONS, NOON, is_undo=True)
    assert refused_undo.summary.startswith("orders: undo of demote")
    other_broker = CaseNotification(replace(CASE, broker_id=3), ActionOutcome.REFUSED, EXPLANATIONS, NOON)
    assert format_body(other_broker, "webhook")["fingerprint"] != failed["fingerprint"]


def test_a_slack_message_has_every_refusal_with_markup_escaped() -> None:
    assert format_body(REFUSED, "slack")["text"].split("\n") == [
        ":large_yellow_circle: *orders: demote of broker 2 refused: broker 3 is &lt;fenced&gt;*",
        "2026-03-02 12:00:00 UTC, ann: DEGRADED",
        "a reassignment is in progress: t-1",
    ]
    assert format_body(UNDONE, "slack")["text"].startswith(":large_green_circle:")


def test_a_pagerduty_incident_is_triggered_and_resolved_with_the_same_dedup_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "secret")
    routing_key = {"routing_key": {"env": "KEY"}}
    triggered = format_body(REFUSED, "pagerduty", **routing_key)
    resolved = format_body(UNDONE, "pagerduty", **routing_key)
    assert (triggered["event_action"], triggered["payload"]["severity"]) == ("trigger", "warning")
    assert triggered["payload"]["custom_details"]["words"] == list(EXPLANATIONS)
    assert (resolved["event_action"], resolved["dedup_key"]) == ("resolve", triggered["dedup_key"])


def test_an_alertmanager_alert_is_resolved_under_every_severity() -> None:
    (fired,) = format_body(FAILED, "alertmanager")
    resolved = format_body(UNDONE, "alertmanager")
    assert fired["endsAt"] > fired["startsAt"]
    assert fired["labels"] in [alert["labels"] for alert in resolved]
    assert {alert["labels"]["severity"] for alert in resolved} == {"page", "ticket"}
    assert all(alert["endsAt"] == NOON.isoformat() for alert in resolved)


def test_a_receiver_in_burn_in_is_not_paged() -> None:
    assert format_body(FAILED, "webhook", burn_in=True)["severity"] == "burn-in"
    assert format_body(FAILED, "slack", burn_in=True)["text"].startswith(":white_circle:")
