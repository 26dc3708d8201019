"""Rules and alerts: they use promised metrics, are tested, and each alert has a runbook."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.deployment.manifests import INFRA, ROOT, load_document
from tests.deployment.metrics import RULES, find_unknown_names, list_recorded_names, load_alerts, load_rules
from tests.prometheus_rule import RESOURCE, resource

PROMETHEUS = INFRA / "prometheus"
RUNBOOK = "docs/operations/alerts.md"


def list_anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings: lower case, without punctuation, words joined by dashes."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_name_or_label_that_is_not_promised_is_reported() -> None:
    assert find_unknown_names(["sum by (cluster) (fleetgauge_probes_total)"]) == []
    assert find_unknown_names(["fleetgauge_probe_total"])
    assert find_unknown_names(['fleetgauge_probes_total{brokr="1"}'])
    assert find_unknown_names(["sum by (vantage) (fleetgauge_probes_total)"])


def test_rules_use_promised_metrics_only() -> None:
    assert find_unknown_names(rule["expr"] for rule in load_rules()) == []


def test_every_recorded_series_is_used() -> None:
    board = (INFRA / "grafana/boards/fleetgauge.json").read_text()
    used = board + " ".join(rule["expr"] for rule in load_rules())
    assert [name for name in list_recorded_names() if name not in used] == []


@pytest.mark.parametrize("alert", load_alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_has_a_severity_a_summary_and_a_runbook(alert: dict[str, dict[str, str]]) -> None:
    assert alert["labels"]["severity"] in {"page", "ticket", "heartbeat"}
    assert len(alert["annotations"]["summary"]) > 40
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert anchor in list_anchors(ROOT / page) if anchor else (ROOT / page).is_file()


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    tests = load_document(PROMETHEUS / "rules_test.yml")["tests"]
    fired = {
        case["alertname"]
        for test in tests
        for case in test.get("alert_rule_test", ())
        if case.get("exp_alerts")
    }
    assert fired == {alert["alert"] for alert in load_alerts()}


def test_every_alert_reaches_a_receiver_and_addresses_come_from_files() -> None:
    config = load_document(PROMETHEUS / "alertmanager.yml")
    receivers = {receiver["name"] for receiver in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers
    assert "_file: /etc/alertmanager/secrets/" in (PROMETHEUS / "alertmanager.yml").read_text()
    addresses = {"url", "api_url", "routing_key", "service_key", "password"}
    for receiver in config["receivers"]:
        for kind, settings in receiver.items():
            assert kind == "name" or not addresses & set().union(*settings)


def test_inhibitions_refer_to_existing_alerts() -> None:
    text = (PROMETHEUS / "alertmanager.yml").read_text()
    named = set(re.findall(r'alertname="(\w+)"', text))
    assert named <= {alert["alert"] for alert in load_alerts()}


def test_the_operators_resource_has_the_same_rules() -> None:
    assert RESOURCE.read_text(encoding="utf-8") == resource(), "run 'make format'"
    assert load_document(RESOURCE)["spec"] == load_document(RULES)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "rules.yml"),
        ("test", "rules", "rules_test.yml"),
        ("check", "config", "prometheus.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts_the_file(promtool: str, arguments: tuple[str, ...]) -> None:
    result = subprocess.run(
        [promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr
