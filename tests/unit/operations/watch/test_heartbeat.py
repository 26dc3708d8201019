"""Heartbeats are sent to a real HTTP server for as long as the watch works."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fleetgauge_core.fleet import Notifier, Secret
from fleetgauge_operations.watch import heartbeat
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.notifier_context import NotifierContext
from tests.receiver import Receiver
from tests.unit.operations.watch.sample_findings import NOON, DeliveryRecorder, opened
from tests.waiting import wait_until

DEADLINE_S = 30


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver, while heartbeats are sent every 50 ms."""
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.05)
    monkeypatch.setattr(heartbeat, "_CHECK_INTERVAL_S", 0.01)
    with Receiver().listening() as listening_receiver:
        yield listening_receiver


@contextmanager
def _running_heartbeat(receiver: Receiver, context: NotifierContext) -> Iterator[Heartbeat]:
    sink = Heartbeat(Notifier(kind="heartbeat", url=receiver.url), context)
    sink.start()
    try:
        yield sink
    finally:
        sink.stop()


def _wait_for_more(receiver: Receiver) -> None:
    before = len(receiver.posts)
    wait_until(lambda: len(receiver.posts) > before + 2, DEADLINE_S, "heartbeats")


def test_a_heartbeat_is_sent_repeatedly_despite_findings_and_rejections(receiver: Receiver) -> None:
    with _running_heartbeat(receiver, DeliveryRecorder().context()) as sink:
        _wait_for_more(receiver)
        sink.notify(opened())
        receiver.answers = [500, 400]
        _wait_for_more(receiver)
    assert receiver.bodies[0] == {"status": "watching", "at": NOON.isoformat()}


@pytest.mark.parametrize(
    "recorder",
    [
        DeliveryRecorder(last_pulse_at=None),
        DeliveryRecorder(last_pulse_at=NOON - timedelta(minutes=1)),
        DeliveryRecorder(is_leader=False),
    ],
    ids=["no pulse yet", "no pulse for a minute", "another watch leads"],
)
def test_no_heartbeat_is_sent_by_a_watch_that_would_detect_nothing(
    receiver: Receiver, recorder: DeliveryRecorder
) -> None:
    checks: list[datetime | None] = []

    def last_pulse_at() -> datetime | None:
        checks.append(recorder.last_pulse_at)
        return recorder.last_pulse_at

    with _running_heartbeat(receiver, replace(recorder.context(), last_pulse_at=last_pulse_at)):
        wait_until(lambda: len(checks) > 20, DEADLINE_S, "enough checks")
    assert receiver.bodies == []


def test_a_missing_secret_is_logged_and_read_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier(kind="heartbeat", url_from=Secret(env="HEARTBEAT"))
    sink = Heartbeat(notifier, DeliveryRecorder().context())
    sink.start()
    wait_until(lambda: "HEARTBEAT is not set" in caplog.text, DEADLINE_S, "the log line")
    monkeypatch.setenv("HEARTBEAT", receiver.url)
    _wait_for_more(receiver)
    sink.stop()
