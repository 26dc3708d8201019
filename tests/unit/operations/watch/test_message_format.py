"""The bodies that each kind of receiver is sent for a finding."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetgauge_core.detection import Finding, FindingSubject, HealthCondition, HealthState
from fleetgauge_core.detection.finding import build_finding, mark_as_unwatched
from fleetgauge_core.fleet import Notifier
from fleetgauge_dashboards.links import AlertsView, parse_view
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.watch.message_format import FindingFormat, summarize_finding
from tests.unit.operations.watch.sample_findings import BROKER, NOON, PATH, cleared, opened

DOWN, RECOVERED = opened(), cleared()
FORMAT = FindingFormat("https://page.example/")
PAGE = "https://page.example/alerts?cluster=orders"
SUMMARY = "orders: broker 3 is down: it neither answers ApiVersions nor acknowledges probes"


def format_notification(notification: Notification, kind: str, burn_in: bool = False) -> Any:
    key = {"routing_key": {"env": "KEY"}} if kind == "pagerduty" else {}
    notifier = {"kind": kind, "url": "http://receiver.example/", "burn_in": burn_in, **key}
    return Receiver(Notifier.model_validate(notifier)).body([notification], NOON)


def format_finding(
    finding: Finding, kind: str, finding_format: FindingFormat = FORMAT, burn_in: bool = False
) -> Any:
    return format_notification(finding_format.build_notification(finding), kind, burn_in)


@pytest.fixture(autouse=True)
def _set_routing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "key")


def test_the_alerts_page_is_linked_if_the_url_of_the_dashboard_is_known() -> None:
    assert FORMAT.page(BROKER) == PAGE
    assert FindingFormat(None).page(BROKER) is None
    assert parse_view("/alerts", PAGE.partition("?")[2]) == AlertsView("orders", None)


@pytest.mark.parametrize("state", [state for state in HealthState if state.is_alert])
def test_every_finding_kind_has_a_runbook(state: HealthState) -> None:
    path = FORMAT.runbook(HealthState.HEALTHY, state)
    assert path == FORMAT.runbook(state, HealthState.HEALTHY)
    text = Path(path).read_text(encoding="utf-8")
    assert f"`{state}`" in "".join(text.splitlines()[2:4])
    for part in ("Meaning", "Impact", "Check", "Mitigate", "Resolved"):
        assert f"\n**{part}" in text, part


def test_a_webhook_is_sent_the_whole_finding() -> None:
    fired, resolved = format_finding(DOWN, "webhook"), format_finding(RECOVERED, "webhook")
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["fingerprint"] == resolved["fingerprint"]
    assert fired["id"] != resolved["id"]
    assert (fired["cluster"], fired["broker"], fired["kind"]) == ("orders", 3, "BROKER_DOWN")
    assert fired["at"] == "2026-03-02T12:00:00+00:00"
    assert fired["evidence"] == {"since": "then"}
    assert (fired["severity"], fired["page"]) == ("page", PAGE)
    assert fired["runbook"] == "docs/runbooks/broker-down.md"
    assert json.loads(json.dumps(fired)) == fired


def test_a_vantage_with_a_fault_of_its_own_says_which_and_what_to_do() -> None:
    subject = FindingSubject("orders", HealthCondition.VANTAGE_ILL, vantage="zone-a")
    evidence = {"vantage": "zone-a", "brokers": [1, 2], "agent_fault": "rights"}
    opened_finding = build_finding(subject, HealthState.HEALTHY, HealthState.VANTAGE_ILL, NOON, evidence)
    closed_finding = build_finding(subject, HealthState.VANTAGE_ILL, HealthState.HEALTHY, NOON, evidence)
    summary = (
        "orders: vantage zone-a does not measure brokers 1, 2: the agent lacks a permission; "
        "grant what `fleetgauge probe acls` prints"
    )
    for kind in ("webhook", "alertmanager"):
        assert summary in json.dumps(format_finding(opened_finding, kind))
    assert summarize_finding(opened_finding) == summary
    assert summarize_finding(closed_finding) == "orders: vantage zone-a measures its brokers again"
    assert FORMAT.build_notification(opened_finding).severity == "ticket"
    of_another_version = build_finding(
        subject, HealthState.HEALTHY, HealthState.VANTAGE_ILL, NOON, evidence | {"agent_fault": "next year"}
    )
    assert "a fault of its agent, its host or its network" in summarize_finding(of_another_version)


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_the_end_of_a_finding_of_a_cluster_that_is_not_watched_says_no_recovery(kind: str) -> None:
    body = format_finding(mark_as_unwatched(RECOVERED), kind)
    text = "orders: no longer watched, by the fleet file: BROKER_DOWN of broker 3 is closed"
    assert text in body["summary" if kind == "webhook" else "text"]
    assert kind == "slack" or (body["status"], body["evidence"]["watched"]) == ("resolved", False)


def test_a_slack_message_has_the_summary_and_links() -> None:
    summary, details = format_finding(DOWN, "slack")["text"].split("\n")
    assert summary == f":red_circle: *{SUMMARY}*"
    assert details == (
        f"2026-03-02 12:00:00 UTC · <{PAGE}|history and evidence>"
        " · runbook: docs/runbooks/broker-down.md"
        " · `fleetgauge mitigate apply --cluster orders --broker 3 --action restart`"
    )
    assert format_finding(RECOVERED, "slack", FindingFormat(None))["text"] == (
        ":large_green_circle: *orders: broker 3 has recovered*\n2026-03-02 12:00:00 UTC"
    )


def test_a_notification_suggests_the_command_of_a_mitigation_that_may_help() -> None:
    slow = FindingSubject("orders", HealthCondition.DEGRADED, 3)
    degraded = opened(slow, HealthState.DEGRADED, HealthState.HEALTHY)
    recovered = opened(slow, HealthState.HEALTHY, HealthState.DEGRADED)
    advice = "fleetgauge mitigate apply --cluster orders --broker 3 --action demote"
    assert format_finding(degraded, "webhook")["advice"] == advice
    assert f" · `{advice}`" in format_finding(degraded, "slack")["text"]
    assert format_finding(degraded, "pagerduty")["payload"]["custom_details"]["advice"] == advice
    (alert,) = format_finding(degraded, "alertmanager")
    assert alert["annotations"]["advice"] == advice
    # No mitigation helps a whole cluster, and a broker that has recovered needs none.
    cluster = opened(
        FindingSubject("orders", HealthCondition.CLUSTER_DOWN), HealthState.CLUSTER_DOWN, HealthState.HEALTHY
    )
    for finding in (cluster, recovered):
        assert format_finding(finding, "webhook")["advice"] is None
    assert advice not in format_finding(recovered, "slack")["text"]
    assert "advice" not in format_finding(cluster, "alertmanager")[0]["annotations"]


def test_a_notification_holds_peers_budgets_and_recent_actions() -> None:
    def with_peers(peers: list[int]) -> Finding:
        evidence = {"peers": {"brokers": 5, "named": peers}}
        return build_finding(BROKER, HealthState.SUSPECT, HealthState.BROKER_DOWN, NOON, evidence)

    with_context = FindingFormat(None, context_of=lambda cluster_id: (f"actions on {cluster_id} <now>",))
    lines = ["of its 5 peers, these have findings too: 2, 4", "actions on orders <now>"]
    assert with_context.context(with_peers([])) == ["none of its 5 peers has a finding", lines[1]]
    finding = with_peers([2, 4])
    assert format_finding(finding, "webhook", with_context)["around"] == lines
    assert format_finding(finding, "pagerduty", with_context)["payload"]["custom_details"]["around"] == lines
    (alert,) = format_finding(finding, "alertmanager", with_context)
    assert alert["annotations"]["around"] == "\n".join(lines)
    assert format_finding(finding, "slack", with_context)["text"].split("\n")[2:] == [
        lines[0],
        "actions on orders &lt;now&gt;",
    ]
    # A broker that has recovered needs none of it, and a cluster has no peers.
    assert format_finding(RECOVERED, "webhook", with_context)["around"] == []
    assert with_context.context(opened(PATH, HealthState.PATH)) == lines[1:]


def test_slack_markup_in_names_is_escaped() -> None:
    subject = FindingSubject("orders", HealthCondition.PATH, vantage="<!channel>&co", target_broker_id=2)
    text = format_finding(opened(subject, HealthState.PATH), "slack", FindingFormat(None))["text"]
    assert "&lt;!channel&gt;&amp;co" in text


def test_an_incident_has_one_dedup_key_until_it_is_resolved() -> None:
    trigger, resolve = (format_finding(finding, "pagerduty") for finding in (DOWN, RECOVERED))
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert {trigger["dedup_key"], resolve["dedup_key"]} == {BROKER.fingerprint}
    assert {trigger["routing_key"], resolve["routing_key"]} == {"key"}
    assert [link["href"] for link in trigger["links"]] == [PAGE]
    payload = trigger["payload"]
    assert (payload["severity"], payload["source"]) == ("critical", "orders")
    assert (payload["component"], payload["class"]) == ("broker 3", "BROKER_DOWN")
    assert payload["timestamp"] == "2026-03-02T12:00:00+00:00"
    assert payload["summary"] == SUMMARY
    assert payload["custom_details"]["evidence"] == {"since": "then"}


def test_a_ticket_is_a_warning_without_a_component() -> None:
    event = format_finding(
        opened(PATH, HealthState.PATH, HealthState.HEALTHY), "pagerduty", FindingFormat(None)
    )
    assert (event["payload"]["severity"], event["payload"]["component"]) == ("warning", None)
    assert event["links"] == []


def test_a_receiver_in_burn_in_is_not_paged_and_is_sent_what_would_have_paged() -> None:
    summary = f"would have paged: {SUMMARY}"
    document = format_finding(DOWN, "webhook", burn_in=True)
    assert (document["severity"], document["summary"]) == ("burn-in", summary)
    payload = format_finding(DOWN, "pagerduty", burn_in=True)["payload"]
    assert (payload["severity"], payload["summary"]) == ("info", summary)
    assert format_finding(DOWN, "slack", burn_in=True)["text"].startswith(f":white_circle: *{summary}*")
    (alert,) = format_finding(DOWN, "alertmanager", burn_in=True)
    assert (alert["labels"]["severity"], alert["annotations"]["summary"]) == ("burn-in", summary)
    recovered = format_finding(RECOVERED, "slack", burn_in=True)["text"]
    assert recovered.startswith(":large_green_circle: *orders: broker 3 has recovered")
    # A ticket would not have paged either.
    ticket = format_finding(opened(PATH, HealthState.PATH, HealthState.HEALTHY), "webhook", burn_in=True)
    assert ticket["summary"].startswith("orders: vantage zone-b")


# Alertmanager ---------------------------------------------------------------------------


def test_labels_are_the_same_in_every_state_of_the_subject() -> None:
    down = opened(BROKER, HealthState.BROKER_DOWN)
    cut_off = opened(BROKER, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN)
    (first,), (second,), (last,) = (
        format_finding(finding, "alertmanager") for finding in (down, cut_off, RECOVERED)
    )
    assert first["labels"] == second["labels"] == last["labels"]
    kinds = [alert["annotations"]["kind"] for alert in (first, second, last)]
    assert kinds == ["BROKER_DOWN", "NETWORK_UNAVAILABLE", "BROKER_DOWN"]


def test_a_broker_finding_is_a_page_and_a_path_finding_is_a_ticket() -> None:
    open_alert = FORMAT.build_open_alert(BROKER, HealthState.BROKER_DOWN, NOON)
    assert format_notification(open_alert, "alertmanager")[0]["labels"] == {
        "alertname": "BROKER_DOWN",
        "cluster": "orders",
        "broker": "3",
        "severity": "page",
        "fingerprint": BROKER.fingerprint,
    }
    labels = format_finding(opened(PATH, HealthState.PATH), "alertmanager")[0]["labels"]
    assert (labels["vantage"], labels["towards"], labels["severity"]) == ("zone-b", "2", "ticket")
    assert "broker" not in labels


def test_an_open_alert_is_valid_for_minutes_and_a_resolved_one_has_its_end() -> None:
    receiver = Receiver(Notifier(kind="alertmanager", url="http://a"))
    open_alert, resolved = FORMAT.build_notification(DOWN), FORMAT.build_notification(RECOVERED)
    (posted,) = receiver.body([open_alert], NOON + timedelta(hours=1))
    assert (posted["startsAt"], posted["endsAt"]) == (
        "2026-03-02T12:00:00+00:00",
        "2026-03-02T13:05:00+00:00",
    )
    (posted,) = receiver.body([resolved], NOON + timedelta(minutes=2))
    assert posted["endsAt"] == "2026-03-02T12:00:00+00:00"
    # An agent's clock that is ahead must not make an alert begin after its end.
    (posted,) = receiver.body([resolved], NOON - timedelta(minutes=1))
    assert posted["startsAt"] == posted["endsAt"] == "2026-03-02T11:59:00+00:00"
