from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fleetgauge_core.fleet import Secret
from fleetgauge_operations.watch import heartbeat
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.notifier_context import NotifierContext
from tests.receiver import Receiver
from tests.unit.operations.watch.sample_findings import NOON, DeliveryRecorder, named
from tests.waiting import wait_until

PATIENCE_S = 30


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.05)
    monkeypatch.setattr(heartbeat, "_LOOK_EVERY_S", 0.01)
    with Receiver().listening() as one:
        yield one


@contextmanager
def _beating(receiver: Receiver, telling: NotifierContext) -> Iterator[Heartbeat]:
    one = Heartbeat(lambda: receiver.url, telling)
    one.start()
    try:
        yield one
    finally:
        one.stop()


def _beats_on(receiver: Receiver) -> None:
    before = len(receiver.posts)
    wait_until(lambda: len(receiver.posts) > before + 2, PATIENCE_S, "signs of life")


def test_it_is_given_again_and_again_whatever_is_found_and_not_taken(receiver: Receiver) -> None:
    with _beating(receiver, DeliveryRecorder().telling()) as one:
        _beats_on(receiver)
        one.notify(named())
        receiver.answers = [500, 400]
        _beats_on(receiver)
    assert receiver.bodies[0] == {"status": "watching", "at": NOON.isoformat()}


@pytest.mark.parametrize(
    "ear",
    [
        DeliveryRecorder(heard=None),
        DeliveryRecorder(heard=NOON - timedelta(minutes=1)),
        DeliveryRecorder(may_tell=False),
    ],
    ids=["nobody heard yet", "nobody heard for a minute", "another is at work"],
)
def test_it_is_not_given_where_nobody_would_be_named(receiver: Receiver, ear: DeliveryRecorder) -> None:
    looks: list[datetime | None] = []

    def heard() -> datetime | None:
        looks.append(ear.heard)
        return ear.heard

    with _beating(receiver, replace(ear.telling(), heard=heard)):
        wait_until(lambda: len(looks) > 20, PATIENCE_S, "it to look often enough")
    assert receiver.bodies == []


def test_a_secret_that_is_away_is_missed_and_waited_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = Heartbeat(Secret(env="HEARTBEAT").read, DeliveryRecorder().telling())
    one.start()
    wait_until(lambda: "HEARTBEAT is not set" in caplog.text, PATIENCE_S, "it to be missed")
    monkeypatch.setenv("HEARTBEAT", receiver.url)
    _beats_on(receiver)
    one.stop()
