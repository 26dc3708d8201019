"""Rules and alerts: on metrics that are promised, tested, and each with a page that says what to do."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.deployment.manifests import INFRA, ROOT, document
from tests.deployment.metrics import RULES, alerts, recorded, rules, strangers
from tests.prometheus_rule import RESOURCE, resource

PROMETHEUS = INFRA / "prometheus"
RUNBOOK = "docs/operations/alerts.md"


def anchors(path: Path) -> set[str]:
    """What a heading is linked by: lower case, without punctuation, words joined by dashes."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_name_or_label_that_nobody_promised_is_found() -> None:
    assert strangers(["sum by (cluster) (fleetgauge_probes_total)"]) == []
    assert strangers(["fleetgauge_probe_total"])
    assert strangers(['fleetgauge_probes_total{brokr="1"}'])
    assert strangers(["sum by (vantage) (fleetgauge_probes_total)"])


def test_rules_use_promised_metrics_only() -> None:
    assert strangers(rule["expr"] for rule in rules()) == []


def test_every_recorded_series_is_used() -> None:
    board = (INFRA / "grafana/boards/fleetgauge.json").read_text()
    used = board + " ".join(rule["expr"] for rule in rules())
    assert [name for name in recorded() if name not in used] == []


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_what_and_where_to_read_on(alert: dict[str, dict[str, str]]) -> None:
    assert alert["labels"]["severity"] in {"page", "ticket", "heartbeat"}
    assert len(alert["annotations"]["summary"]) > 40
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert anchor in anchors(ROOT / page) if anchor else (ROOT / page).is_file()


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    tests = document(PROMETHEUS / "rules_test.yml")["tests"]
    fired = {
        case["alertname"]
        for test in tests
        for case in test.get("alert_rule_test", ())
        if case.get("exp_alerts")
    }
    assert fired == {alert["alert"] for alert in alerts()}


def test_every_alert_reaches_a_receiver_and_addresses_come_from_files() -> None:
    told = document(PROMETHEUS / "alertmanager.yml")
    receivers = {receiver["name"] for receiver in told["receivers"]}
    routes = [told["route"], *told["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers
    assert "_file: /etc/alertmanager/secrets/" in (PROMETHEUS / "alertmanager.yml").read_text()
    addresses = {"url", "api_url", "routing_key", "service_key", "password"}
    for receiver in told["receivers"]:
        for kind, settings in receiver.items():
            assert kind == "name" or not addresses & set().union(*settings)


def test_inhibitions_name_alerts_that_exist() -> None:
    told = (PROMETHEUS / "alertmanager.yml").read_text()
    named = set(re.findall(r'alertname="(\w+)"', told))
    assert named <= {alert["alert"] for alert in alerts()}


def test_the_operators_resource_holds_the_same_rules() -> None:
    assert RESOURCE.read_text(encoding="utf-8") == resource(), "run 'make format'"
    assert document(RESOURCE)["spec"] == document(RULES)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "rules.yml"),
        ("test", "rules", "rules_test.yml"),
        ("check", "config", "prometheus.yml"),
    ],
    ids=" ".join,
)
def test_promtool_agrees(promtool: str, arguments: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
