"""What people are told of a case."""

from dataclasses import replace
from typing import Any

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.case_notification import CaseNotification
from fleetgauge_operations.notify.outboxes import SENT_ONCE
from fleetgauge_operations.notify.receivers import Receiver
from tests.unit.operations.mitigation.simulated_cluster import NOON

CASE = MitigationCase(
    "c1", Action.DEMOTE, "orders", 2, "zone-2", "ann", "DEGRADED", NOON, CaseOutcome.REFUSED
)
WORDS = ("broker 3 is <fenced>", "a reassignment is under way: t-1")
REFUSED = CaseNotification(CASE, CaseOutcome.REFUSED, WORDS, NOON)
FAILED = CaseNotification(CASE, CaseOutcome.FAILED, ("broker 2 leads 1 partitions after 5 s",), NOON)
UNDONE = CaseNotification(CASE, CaseOutcome.UNDONE, (), NOON, is_undo=True)


def notifier(kind: str, **more: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example:9093/", **more})


def of(news: CaseNotification, kind: str, **more: Any) -> Any:
    return Receiver(notifier(kind, **more), SENT_ONCE).body([news.notification], NOON)


def test_a_webhook_is_told_what_speaks_against_it() -> None:
    told = of(REFUSED, "webhook")
    assert (told["status"], told["severity"], told["kind"]) == ("firing", "ticket", "MITIGATION_REFUSED")
    assert (told["cluster"], told["broker"], told["words"]) == ("orders", 2, list(WORDS))
    assert told["summary"] == "orders: demote of broker 2 refused: broker 3 is <fenced>"


def test_what_failed_wakes_somebody_and_what_is_undone_ends_it() -> None:
    failed, undone = of(FAILED, "webhook"), of(UNDONE, "webhook")
    assert (failed["status"], failed["severity"]) == ("firing", "page")
    assert (undone["status"], undone["fingerprint"]) == ("resolved", failed["fingerprint"])
    assert undone["summary"] == "orders: demote of broker 2 undone"
    assert CaseNotification(CASE, CaseOutcome.REFUSED, WORDS, NOON, is_undo=True).summary.startswith(
        "orders: undo of demote"
    )
    of_another = CaseNotification(replace(CASE, broker_id=3), CaseOutcome.REFUSED, WORDS, NOON)
    assert of(of_another, "webhook")["fingerprint"] != failed["fingerprint"]


def test_a_channel_reads_every_reason_and_no_markup() -> None:
    assert of(REFUSED, "slack")["text"].split("\n") == [
        ":large_yellow_circle: *orders: demote of broker 2 refused: broker 3 is &lt;fenced&gt;*",
        "2026-03-02 12:00:00 UTC, ann: DEGRADED",
        "a reassignment is under way: t-1",
    ]
    assert of(UNDONE, "slack")["text"].startswith(":large_green_circle:")


def test_an_incident_opens_and_is_resolved_under_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "secret")
    key = {"routing_key": {"env": "KEY"}}
    opened = of(REFUSED, "pagerduty", **key)
    closed = of(UNDONE, "pagerduty", **key)
    assert (opened["event_action"], opened["payload"]["severity"]) == ("trigger", "warning")
    assert opened["payload"]["custom_details"]["words"] == list(WORDS)
    assert (closed["event_action"], closed["dedup_key"]) == ("resolve", opened["dedup_key"])


def test_an_alert_ends_whatever_it_was_opened_as() -> None:
    (opened,) = of(FAILED, "alertmanager")
    closed = of(UNDONE, "alertmanager")
    assert opened["endsAt"] > opened["startsAt"]
    assert opened["labels"] in [one["labels"] for one in closed]
    assert {one["labels"]["severity"] for one in closed} == {"page", "ticket"}
    assert all(one["endsAt"] == NOON.isoformat() for one in closed)


def test_who_only_tries_wakes_nobody() -> None:
    assert of(FAILED, "webhook", burn_in=True)["severity"] == "burn-in"
    assert of(FAILED, "slack", burn_in=True)["text"].startswith(":white_circle:")
