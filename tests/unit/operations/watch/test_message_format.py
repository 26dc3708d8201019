"""What receivers are sent of a finding, kind by kind."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetgauge_core.detection import Finding, FindingSubject, HealthCondition, HealthState
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.fleet import Notifier
from fleetgauge_dashboards.links import AlertsView, parse_view
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.watch.message_format import FindingFormat
from tests.unit.operations.watch.sample_findings import BROKER, NOON, PATH, cleared, named

DOWN, RECOVERED = named(), cleared()
FORMAT = FindingFormat("https://page.example/")
PAGE = "https://page.example/alerts?cluster=orders"
NEWS = "orders: broker 3 is down: it neither answers ApiVersions nor acknowledges probes"


def body_of(notification: Notification, kind: str, burn_in: bool = False) -> Any:
    key = {"routing_key": {"env": "KEY"}} if kind == "pagerduty" else {}
    notifier = {"kind": kind, "url": "http://receiver.example/", "burn_in": burn_in, **key}
    return Receiver(Notifier.model_validate(notifier)).body([notification], NOON)


def body(finding: Finding, kind: str, finding_format: FindingFormat = FORMAT, burn_in: bool = False) -> Any:
    return body_of(finding_format.notification(finding), kind, burn_in)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "key")


def test_a_page_is_linked_if_its_address_is_known() -> None:
    assert FORMAT.page(BROKER) == PAGE
    assert FindingFormat(None).page(BROKER) is None
    assert parse_view("/alerts", PAGE.partition("?")[2]) == AlertsView("orders", None)


@pytest.mark.parametrize("state", [state for state in HealthState if state.is_alert])
def test_every_kind_of_finding_has_its_runbook(state: HealthState) -> None:
    path = FORMAT.runbook(HealthState.HEALTHY, state)
    assert path == FORMAT.runbook(state, HealthState.HEALTHY)
    text = Path(path).read_text(encoding="utf-8")
    assert f"`{state}`" in "".join(text.splitlines()[2:4])
    for part in ("What it means", "What it costs", "Look", "Do", "It ends"):
        assert f"\n**{part}" in text, part


def test_a_webhook_is_sent_the_whole_finding() -> None:
    fired, resolved = body(DOWN, "webhook"), body(RECOVERED, "webhook")
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["fingerprint"] == resolved["fingerprint"]
    assert fired["id"] != resolved["id"]
    assert (fired["cluster"], fired["broker"], fired["kind"]) == ("orders", 3, "BROKER_DOWN")
    assert fired["at"] == "2026-03-02T12:00:00+00:00"
    assert fired["evidence"] == {"since": "then"}
    assert (fired["severity"], fired["page"]) == ("page", PAGE)
    assert fired["runbook"] == "docs/runbooks/broker-down.md"
    assert json.loads(json.dumps(fired)) == fired


def test_a_channel_reads_the_news_and_where_to_continue() -> None:
    news, more = body(DOWN, "slack")["text"].split("\n")
    assert news == f":red_circle: *{NEWS}*"
    assert more == (
        f"2026-03-02 12:00:00 UTC · <{PAGE}|history and evidence>"
        " · runbook: docs/runbooks/broker-down.md"
        " · `fleetgauge mitigate apply --cluster orders --broker 3 --action restart`"
    )
    assert body(RECOVERED, "slack", FindingFormat(None))["text"] == (
        ":large_green_circle: *orders: broker 3 has recovered*\n2026-03-02 12:00:00 UTC"
    )


def test_a_mitigation_that_may_help_is_named_with_its_command() -> None:
    slow = FindingSubject("orders", HealthCondition.DEGRADED, 3)
    begins = named(slow, HealthState.DEGRADED, HealthState.HEALTHY)
    ends = named(slow, HealthState.HEALTHY, HealthState.DEGRADED)
    advice = "fleetgauge mitigate apply --cluster orders --broker 3 --action demote"
    assert body(begins, "webhook")["advice"] == advice
    assert f" · `{advice}`" in body(begins, "slack")["text"]
    assert body(begins, "pagerduty")["payload"]["custom_details"]["advice"] == advice
    (alert,) = body(begins, "alertmanager")
    assert alert["annotations"]["advice"] == advice
    # No mitigation helps a whole cluster, and a broker that has recovered needs none.
    cluster = named(
        FindingSubject("orders", HealthCondition.CLUSTER_DOWN), HealthState.CLUSTER_DOWN, HealthState.HEALTHY
    )
    for finding in (cluster, ends):
        assert body(finding, "webhook")["advice"] is None
    assert advice not in body(ends, "slack")["text"]
    assert "advice" not in body(cluster, "alertmanager")[0]["annotations"]


def test_a_notification_holds_peers_budgets_and_recent_actions() -> None:
    def among(peers: list[int]) -> Finding:
        evidence = {"peers": {"brokers": 5, "named": peers}}
        return build_finding(BROKER, HealthState.SUSPECT, HealthState.BROKER_DOWN, NOON, evidence)

    with_context = FindingFormat(None, context_of=lambda cluster_id: (f"actions on {cluster_id} <now>",))
    lines = ["of its 5 peers, these have findings too: 2, 4", "actions on orders <now>"]
    assert with_context.context(among([])) == ["none of its 5 peers has a finding", lines[1]]
    finding = among([2, 4])
    assert body(finding, "webhook", with_context)["around"] == lines
    assert body(finding, "pagerduty", with_context)["payload"]["custom_details"]["around"] == lines
    (alert,) = body(finding, "alertmanager", with_context)
    assert alert["annotations"]["around"] == "\n".join(lines)
    assert body(finding, "slack", with_context)["text"].split("\n")[2:] == [
        lines[0],
        "actions on orders &lt;now&gt;",
    ]
    # A broker that has recovered needs none of it, and a cluster has no peers.
    assert body(RECOVERED, "webhook", with_context)["around"] == []
    assert with_context.context(named(PATH, HealthState.PATH)) == lines[1:]


def test_names_from_a_cluster_are_no_markup_in_a_channel() -> None:
    subject = FindingSubject("orders", HealthCondition.PATH, vantage="<!channel>&co", target_broker_id=2)
    text = body(named(subject, HealthState.PATH), "slack", FindingFormat(None))["text"]
    assert "&lt;!channel&gt;&amp;co" in text


def test_an_incident_has_one_key_from_its_beginning_to_its_end() -> None:
    trigger, resolve = (body(finding, "pagerduty") for finding in (DOWN, RECOVERED))
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert {trigger["dedup_key"], resolve["dedup_key"]} == {BROKER.fingerprint}
    assert {trigger["routing_key"], resolve["routing_key"]} == {"key"}
    assert [link["href"] for link in trigger["links"]] == [PAGE]
    payload = trigger["payload"]
    assert (payload["severity"], payload["source"]) == ("critical", "orders")
    assert (payload["component"], payload["class"]) == ("broker 3", "BROKER_DOWN")
    assert payload["timestamp"] == "2026-03-02T12:00:00+00:00"
    assert payload["summary"] == NEWS
    assert payload["custom_details"]["evidence"] == {"since": "then"}


def test_a_ticket_is_a_warning_and_blames_no_broker() -> None:
    event = body(named(PATH, HealthState.PATH, HealthState.HEALTHY), "pagerduty", FindingFormat(None))
    assert (event["payload"]["severity"], event["payload"]["component"]) == ("warning", None)
    assert event["links"] == []


def test_a_receiver_on_trial_wakes_nobody_and_says_that_it_would_have() -> None:
    news = f"would have paged: {NEWS}"
    document = body(DOWN, "webhook", burn_in=True)
    assert (document["severity"], document["summary"]) == ("burn-in", news)
    payload = body(DOWN, "pagerduty", burn_in=True)["payload"]
    assert (payload["severity"], payload["summary"]) == ("info", news)
    assert body(DOWN, "slack", burn_in=True)["text"].startswith(f":white_circle: *{news}*")
    (alert,) = body(DOWN, "alertmanager", burn_in=True)
    assert (alert["labels"]["severity"], alert["annotations"]["summary"]) == ("burn-in", news)
    recovered = body(RECOVERED, "slack", burn_in=True)["text"]
    assert recovered.startswith(":large_green_circle: *orders: broker 3 has recovered")
    # A ticket would not have paged either.
    ticket = body(named(PATH, HealthState.PATH, HealthState.HEALTHY), "webhook", burn_in=True)
    assert ticket["summary"].startswith("orders: vantage zone-b")


# Alertmanager ---------------------------------------------------------------------------


def test_labels_never_change_whatever_state_the_subject_is_in() -> None:
    down = named(BROKER, HealthState.BROKER_DOWN)
    cut_off = named(BROKER, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN)
    (first,), (second,), (end,) = (body(each, "alertmanager") for each in (down, cut_off, RECOVERED))
    assert first["labels"] == second["labels"] == end["labels"]
    kinds = [each["annotations"]["kind"] for each in (first, second, end)]
    assert kinds == ["BROKER_DOWN", "NETWORK_UNAVAILABLE", "BROKER_DOWN"]


def test_a_broker_pages_and_a_path_is_a_ticket() -> None:
    standing = FORMAT.standing(BROKER, HealthState.BROKER_DOWN, NOON)
    assert body_of(standing, "alertmanager")[0]["labels"] == {
        "alertname": "BROKER_DOWN",
        "cluster": "orders",
        "broker": "3",
        "severity": "page",
        "fingerprint": BROKER.fingerprint,
    }
    labels = body(named(PATH, HealthState.PATH), "alertmanager")[0]["labels"]
    assert (labels["vantage"], labels["towards"], labels["severity"]) == ("zone-b", "2", "ticket")
    assert "broker" not in labels


def test_an_open_alert_is_valid_for_minutes_and_a_resolved_one_has_its_end() -> None:
    receiver = Receiver(Notifier(kind="alertmanager", url="http://a"))
    opened, resolved = FORMAT.notification(DOWN), FORMAT.notification(RECOVERED)
    (posted,) = receiver.body([opened], NOON + timedelta(hours=1))
    assert (posted["startsAt"], posted["endsAt"]) == (
        "2026-03-02T12:00:00+00:00",
        "2026-03-02T13:05:00+00:00",
    )
    (posted,) = receiver.body([resolved], NOON + timedelta(minutes=2))
    assert posted["endsAt"] == "2026-03-02T12:00:00+00:00"
    # An agent's clock that is ahead must not make an alert begin after its end.
    (posted,) = receiver.body([resolved], NOON - timedelta(minutes=1))
    assert posted["startsAt"] == posted["endsAt"] == "2026-03-02T11:59:00+00:00"
