import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_operations.watch import http
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import sinks
from fleetgauge_operations.watch.webhook import Webhook, message
from fleetgauge_pipelines.detection import Chain, Finding, Phase, Subject
from fleetgauge_probes.contract import HealthEvent
from fleetgauge_probes.fleet import Notifier
from tests.ports import free_port
from tests.receiver import Receiver

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _finding(
    from_phase: Phase = Phase.SUSPECT, to_phase: Phase = Phase.BROKER_DOWN, event_id: str = "e1"
) -> Finding:
    event = HealthEvent(
        event_id=event_id,
        fingerprint="orders-3-down",
        cluster_id="orders",
        broker_id=3,
        at=NOON,
        from_state=from_phase.value,
        to_state=to_phase.value,
        kind="BROKER_DOWN",
        evidence='{"since": "then"}',
    )
    return Finding(Subject("orders", Chain.BROKER_DOWN, 3), from_phase, to_phase, event)


DOWN = _finding()
BACK = _finding(Phase.BROKER_DOWN, Phase.HEALTHY, "e2")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as one:
        yield one


def _send(url: str, *findings: Finding) -> list[bool]:
    """Tell everything and wait until it is dealt with; what was reported of each."""
    reports: list[bool] = []
    webhook = Webhook(url, reports.append)
    webhook.start()
    for finding in findings:
        webhook.tell(finding)
    webhook.stop()
    return reports


def test_a_finding_arrives_as_json(receiver: Receiver) -> None:
    assert _send(receiver.url, DOWN) == [True]
    (post,) = receiver.posts
    assert (post.content_type, post.body) == ("application/json", message(DOWN))


def test_findings_arrive_in_order_and_none_is_left_behind_by_a_stop(receiver: Receiver) -> None:
    findings = [_finding(event_id=f"e{n}") for n in range(20)]
    _send(receiver.url, *findings)
    assert [body["id"] for body in receiver.bodies] == [one.event.event_id for one in findings]


def test_a_webhook_with_nothing_to_say_stops(receiver: Receiver) -> None:
    _send(receiver.url)
    assert receiver.bodies == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_receiver_that_is_out_for_a_moment_is_told_again_with_the_same_id(
    receiver: Receiver, status: int
) -> None:
    receiver.answers = [status]
    assert _send(receiver.url, DOWN) == [True]
    assert [body["id"] for body in receiver.bodies] == ["e1", "e1"]


def test_a_refusal_is_logged_and_does_not_hold_up_the_next_finding(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [400]
    with caplog.at_level(logging.ERROR, "fleetgauge.watch"):
        assert _send(receiver.url, DOWN, BACK) == [False, True]
    assert [body["id"] for body in receiver.bodies] == ["e1", "e2"]
    assert [record.getMessage() for record in caplog.records] == ["webhook: event e1 refused with status 400"]


@pytest.mark.parametrize(
    "address",
    [lambda port: f"http://127.0.0.1:{port}/hunter2", lambda _: "http://[hunter2", lambda _: "http://"],
    ids=["refused connection", "not an address", "no host"],
)
def test_a_receiver_out_of_reach_is_logged_without_its_url_and_raises_nothing(
    address: Callable[[int], str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http, "_ATTEMPTS", 1)
    with caplog.at_level(logging.ERROR, "fleetgauge.watch"):
        assert _send(address(free_port()), DOWN, BACK) == [False, False]
    messages = [record.getMessage() for record in caplog.records if record.name == "fleetgauge.watch"]
    assert len(messages) == 2
    assert all("not delivered" in one and "hunter2" not in one for one in messages)


def test_a_receiver_that_stays_out_is_given_up_and_the_next_finding_gets_its_turn(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http, "_ATTEMPTS", 1)
    receiver.answers = [503, 503]
    with caplog.at_level(logging.ERROR, "fleetgauge.watch"):
        assert _send(receiver.url, DOWN, BACK) == [False, True]
    assert [body["id"] for body in receiver.bodies] == ["e1", "e1", "e2"]
    assert [r.getMessage() for r in caplog.records if r.name == "fleetgauge.watch"] == [
        "webhook: event e1 not delivered: MaxRetryError"
    ]


def test_a_named_broker_fires_and_a_cleared_one_resolves_the_same_fingerprint() -> None:
    fired, resolved = message(DOWN), message(BACK)
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["fingerprint"] == resolved["fingerprint"]
    assert fired["id"] != resolved["id"]
    assert (fired["cluster"], fired["broker"], fired["kind"]) == ("orders", 3, "BROKER_DOWN")
    assert fired["at"] == "2026-03-02T12:00:00+00:00"
    assert fired["evidence"] == {"since": "then"}
    assert json.loads(json.dumps(fired)) == fired


def test_what_became_of_findings_is_counted_by_notifier(receiver: Receiver) -> None:
    registry = CollectorRegistry()
    notifier = Notifier(kind="webhook", url=receiver.url)
    (webhook,) = sinks([notifier], lambda: NOON, WatchMetrics(registry))
    receiver.answers = [400]
    webhook.start()
    for finding in (DOWN, BACK, DOWN):
        webhook.tell(finding)
    webhook.stop()
    counted = {
        outcome: registry.get_sample_value(
            "fleetgauge_notifications_total", {"notifier": "127.0.0.1", "outcome": outcome}
        )
        for outcome in ("sent", "failed")
    }
    assert counted == {"sent": 2, "failed": 1}
