"""What receivers are told, kind by kind."""

import json
from pathlib import Path

import pytest

from fleetgauge_core.detection import (
    Chain,
    Finding,
    Phase,
    Subject,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_dashboards.links import AlertsView, parse
from fleetgauge_operations.watch import pagerduty, slack, webhook
from fleetgauge_operations.watch.alertmanager import Alert
from fleetgauge_operations.watch.message_format import Manner
from tests.unit.operations.watch.tellings import BROKER, NOON, PATH, cleared, named

DOWN, BACK = named(), cleared()
MANNER = Manner("https://page.example/")
PAGE = "https://page.example/alerts?cluster=orders"


def test_a_page_is_linked_where_it_is_known() -> None:
    assert MANNER.page(BROKER) == PAGE
    assert Manner(None).page(BROKER) is None
    assert parse("/alerts", PAGE.partition("?")[2]) == AlertsView("orders", None)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase.names])
def test_every_kind_has_its_runbook(phase: Phase) -> None:
    path = MANNER.runbook(Phase.HEALTHY, phase)
    assert path == MANNER.runbook(phase, Phase.HEALTHY)
    text = Path(path).read_text(encoding="utf-8")
    assert f"`{phase}`" in "".join(text.splitlines()[2:4])
    for part in ("What it means", "What it costs", "Look", "Do", "It ends"):
        assert f"\n**{part}" in text, part


def test_a_webhook_is_told_all_of_it() -> None:
    fired, resolved = webhook.message(DOWN, MANNER), webhook.message(BACK, MANNER)
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["fingerprint"] == resolved["fingerprint"]
    assert fired["id"] != resolved["id"]
    assert (fired["cluster"], fired["broker"], fired["kind"]) == ("orders", 3, "BROKER_DOWN")
    assert fired["at"] == "2026-03-02T12:00:00+00:00"
    assert fired["evidence"] == {"since": "then"}
    assert (fired["severity"], fired["page"]) == ("page", PAGE)
    assert fired["runbook"] == "docs/runbooks/broker-down.md"
    assert json.loads(json.dumps(fired)) == fired


def test_a_channel_reads_what_is_new_and_where_to_go_on() -> None:
    news, more = slack.message(DOWN, MANNER)["text"].split("\n")
    assert news == ":red_circle: *orders: broker 3 is down: it neither answers nor acknowledges*"
    assert more == (
        f"2026-03-02 12:00:00 UTC · <{PAGE}|since when, and what speaks for it>"
        " · what to do: docs/runbooks/broker-down.md"
        " · `fleetgauge mitigate apply --cluster orders --broker 3 --action restart`"
    )
    assert slack.message(BACK, Manner(None))["text"] == (
        ":large_green_circle: *orders: broker 3 is back*\n2026-03-02 12:00:00 UTC"
    )


def test_where_something_helps_it_is_said_how_to_try_it() -> None:
    slow = Subject("orders", Chain.DEGRADED, 3)
    begins, ends = named(slow, Phase.DEGRADED, Phase.HEALTHY), named(slow, Phase.HEALTHY, Phase.DEGRADED)
    advice = "fleetgauge mitigate apply --cluster orders --broker 3 --action demote"
    assert webhook.message(begins, MANNER)["advice"] == advice
    assert f" · `{advice}`" in slack.message(begins, MANNER)["text"]
    assert pagerduty.message(begins, MANNER, "key")["payload"]["custom_details"]["advice"] == advice
    assert Alert(slow, Phase.DEGRADED, NOON).as_posted(NOON, MANNER)["annotations"]["advice"] == advice
    # Against a whole cluster nothing helps that we do, and whoever is well needs nothing.
    cluster = Subject("orders", Chain.CLUSTER_DOWN)
    for one in (named(cluster, Phase.CLUSTER_DOWN, Phase.HEALTHY), ends):
        assert webhook.message(one, MANNER)["advice"] is None
    assert advice not in slack.message(ends, MANNER)["text"]
    assert "advice" not in Alert(cluster, Phase.CLUSTER_DOWN, NOON).as_posted(NOON, MANNER)["annotations"]


def test_who_is_told_is_told_of_peers_budgets_and_what_was_done() -> None:
    def among(others: list[int]) -> Finding:
        return finding(
            BROKER, Phase.SUSPECT, Phase.BROKER_DOWN, NOON, {"peers": {"brokers": 5, "named": others}}
        )

    manner = Manner(None, known_of=lambda cluster_id: (f"what was done to {cluster_id} <now>",))
    lines = ["of its 5 peers 2, 4 are named as well", "what was done to orders <now>"]
    assert manner.around(among([])) == ["none of its 5 peers is named", lines[1]]
    one = among([2, 4])
    assert webhook.message(one, manner)["around"] == lines
    assert pagerduty.message(one, manner, "key")["payload"]["custom_details"]["around"] == lines
    posted = Alert(BROKER, Phase.BROKER_DOWN, NOON, news=one).as_posted(NOON, manner)
    assert posted["annotations"]["around"] == "\n".join(lines)
    assert slack.message(one, manner)["text"].split("\n")[2:] == [
        lines[0],
        "what was done to orders &lt;now&gt;",
    ]
    # Whoever is back needs none of it, and a cluster has no peers.
    assert webhook.message(BACK, manner)["around"] == []
    assert manner.around(named(PATH, Phase.PATH)) == lines[1:]


def test_a_channel_is_told_no_markup() -> None:
    subject = Subject("orders", Chain.PATH, vantage="<!channel>&co", towards=2)
    text = slack.message(named(subject, Phase.PATH), Manner(None))["text"]
    assert "&lt;!channel&gt;&amp;co" in text


def test_an_incident_has_one_key_from_its_beginning_to_its_end() -> None:
    trigger, resolve = (pagerduty.message(one, MANNER, "key") for one in (DOWN, BACK))
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert {trigger["dedup_key"], resolve["dedup_key"]} == {BROKER.fingerprint}
    assert {trigger["routing_key"], resolve["routing_key"]} == {"key"}
    assert trigger["links"] == [{"href": PAGE, "text": "Since when, and what speaks for it"}]
    payload = trigger["payload"]
    assert (payload["severity"], payload["source"]) == ("critical", "orders")
    assert (payload["component"], payload["class"]) == ("broker 3", "BROKER_DOWN")
    assert payload["timestamp"] == "2026-03-02T12:00:00+00:00"
    assert payload["summary"].startswith("orders: broker 3 is down")
    assert payload["custom_details"]["evidence"] == {"since": "then"}


def test_what_can_wait_for_the_day_is_a_warning_and_names_no_broker() -> None:
    message = pagerduty.message(named(PATH, Phase.PATH, Phase.HEALTHY), Manner(None), "key")
    assert (message["payload"]["severity"], message["payload"]["component"]) == ("warning", None)
    assert message["links"] == []


def test_what_is_only_tried_says_what_would_have_been_and_wakes_nobody() -> None:
    tried = Manner(None, burn_in=True)
    told = "would have paged: orders: broker 3 is down: it neither answers nor acknowledges"
    hook = webhook.message(DOWN, tried)
    assert (hook["severity"], hook["summary"]) == ("burn-in", told)
    incident = pagerduty.message(DOWN, tried, "key")["payload"]
    assert (incident["severity"], incident["summary"]) == ("info", told)
    assert slack.message(DOWN, tried)["text"].startswith(f":white_circle: *{told}*")
    alert = Alert(BROKER, Phase.BROKER_DOWN, NOON).as_posted(NOON, tried)
    assert (alert["labels"]["severity"], alert["annotations"]["summary"]) == ("burn-in", told)
    assert slack.message(BACK, tried)["text"].startswith(":large_green_circle: *orders: broker 3 is back*")
    # A path would have paged nobody either.
    ticket = webhook.message(named(PATH, Phase.PATH, Phase.HEALTHY), tried)
    assert ticket["summary"].startswith("orders: vantage zone-b")
