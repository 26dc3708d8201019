"""`fleetgauge notify test`: receivers are real HTTP servers."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_operations.notify.cli import notify
from tests.ports import free_port
from tests.receiver import Receiver


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTING_KEY", "hunter2")


def run_test(folder: Path, notifiers: list[dict[str, Any]], *arguments: str) -> Result:
    path = folder / "fleet.yaml"
    document = {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}], "notifiers": notifiers}
    path.write_text(yaml.safe_dump(document))
    return CliRunner().invoke(notify, ["test", *arguments, "--config", str(path)])


def test_each_kind_gets_a_marked_test_that_is_resolved_at_once(tmp_path: Path, receiver: Receiver) -> None:
    kinds = ("webhook", "slack", "pagerduty", "heartbeat")
    notifiers = [
        {"kind": kind, "url": receiver.url, "burn_in": True}
        | ({"routing_key": {"env": "ROUTING_KEY"}} if kind == "pagerduty" else {})
        for kind in kinds
    ]
    result = run_test(tmp_path, notifiers, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == [
        {
            "name": f"{kind} 127.0.0.1",
            "kind": kind,
            "accepted": True,
            "status": 200,
            "detail": "accepted with status 200",
        }
        for kind in kinds
    ]
    opened, closed, message, trigger, resolve, beat = receiver.bodies
    assert (opened["status"], closed["status"]) == ("firing", "resolved")
    assert opened["severity"] == closed["severity"] == "info"
    assert opened["fingerprint"] == closed["fingerprint"] != ""
    assert opened["test"] is closed["test"] is True
    assert "Fleetgauge test" in message["text"]
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["payload"]["severity"] == "info"
    assert trigger["dedup_key"] == resolve["dedup_key"]
    assert (beat["status"], beat["test"]) == ("watching", True)
    stderr = " ".join(result.stderr.split())
    assert stderr.index("PagerDuty may page somebody, unless") < stderr.index("accepted with status")
    assert "sign of life" in stderr
    assert "hunter2" not in result.output


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "the login is missing or refused"), (403, "lacks a permission"), (404, "nothing is at this path")],
)
def test_a_refusal_is_described_with_exit_code_1(
    tmp_path: Path, receiver: Receiver, status: int, words: str
) -> None:
    receiver.answers = [status, status]
    result = run_test(tmp_path, [{"kind": "webhook", "url": receiver.url}], "--json")
    assert result.exit_code == 1
    (answer,) = json.loads(result.stdout)
    assert (answer["accepted"], answer["status"]) == (False, status)
    assert words in answer["detail"]
    assert f"webhook 127.0.0.1: refused with status {status}" in result.stderr


def test_other_receivers_are_tested_if_there_is_no_response_from_one(
    tmp_path: Path, receiver: Receiver
) -> None:
    notifiers = [
        {"kind": "slack", "url": f"http://127.0.0.1:{free_port()}/hunter2"},
        {"kind": "slack", "url_from": {"env": "NOT_SET_ANYWHERE"}},
        {"kind": "slack", "url": receiver.url, "name": "chat"},
    ]
    result = run_test(tmp_path, notifiers, "--json")
    assert result.exit_code == 1
    assert [(answer["name"], answer["detail"]) for answer in json.loads(result.stdout)] == [
        ("slack 127.0.0.1", "not delivered: connection refused"),
        (
            "slack",
            "not delivered: the environment variable NOT_SET_ANYWHERE is not set; it must hold a secret",
        ),
        ("chat", "accepted with status 200"),
    ]
    assert "hunter2" not in result.output


def test_a_single_notifier_is_chosen_by_name(tmp_path: Path, receiver: Receiver) -> None:
    notifiers = [
        {"kind": "slack", "url": receiver.url, "name": "chat"},
        {"kind": "webhook", "url": receiver.url},
        {"kind": "webhook", "url": receiver.url},
    ]
    assert run_test(tmp_path, notifiers, "chat").exit_code == 0
    assert len(receiver.posts) == 1
    assert run_test(tmp_path, notifiers, "webhook 127.0.0.1 2").exit_code == 0
    assert len(receiver.posts) == 3
    result = run_test(tmp_path, notifiers, "nobody")
    assert result.exit_code == 2
    stderr = " ".join(result.stderr.split())
    assert "no notifier 'nobody'; known: chat, webhook 127.0.0.1 1, webhook 127.0.0.1 2" in stderr


def test_a_fleet_without_notifiers_is_an_error(tmp_path: Path) -> None:
    result = run_test(tmp_path, [])
    assert result.exit_code == 2
    assert "no notifier to test: add one under `notifiers`" in " ".join(result.stderr.split())
