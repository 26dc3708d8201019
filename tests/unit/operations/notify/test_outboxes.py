"""All receivers of a fleet, at real HTTP servers."""

from typing import Any

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.notify.outboxes import Outboxes, notify_now
from tests.receiver import Receiver
from tests.unit.operations.notify.samples import ManualClock, notification


def notifier(kind: str, **more: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example/", **more})


def test_while_a_person_waits_there_are_three_attempts_and_none_at_a_receiver_that_rejects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        clock.elapsed_s += seconds

    with Receiver().listening() as away, Receiver().listening() as rejecting:
        away.answers = [503, 503]
        rejecting.answers = [400]
        notifiers = [
            notifier("webhook", url=away.url),
            notifier("webhook", url=rejecting.url),
            notifier("heartbeat"),
        ]
        (delivered,) = notify_now(notifiers, notification(), clock.now, clock.elapsed, wait)
        assert delivered.startswith("127.0.0.1 ")
        assert (len(away.posts), len(rejecting.posts)) == (3, 1)
    assert pauses == [1.0, 2.0]
    assert "webhook: orders/2/0 refused with status 400" in caplog.text


def test_a_secret_that_cannot_be_read_keeps_no_other_receiver_from_being_notified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    unreadable = Notifier.model_validate({"kind": "slack", "url_from": {"env": "NOT_SET_ANYWHERE"}})
    with Receiver().listening() as listening:
        notifiers = [unreadable, notifier("webhook", url=listening.url)]
        delivered = notify_now(notifiers, notification(), clock.now, clock.elapsed, lambda _: None)
    assert delivered == ["127.0.0.1"]
    assert "slack: orders/2/0 not delivered: " in caplog.text


def test_a_receiver_that_is_away_holds_up_no_other_and_gets_all_in_order_later() -> None:
    clock, settled = ManualClock(), []
    with Receiver().listening() as away, Receiver().listening() as listening:
        away.answers = [503]
        outboxes = Outboxes(
            [notifier("webhook", url=away.url), notifier("webhook", url=listening.url)],
            clock.now,
            clock.elapsed,
        )
        for number in range(2):
            outboxes.put(
                notification(number), lambda name, settlement, n=number: settled.append((n, settlement))
            )
        outboxes.put(notification(1))
        outboxes.send()
        assert [body["id"] for body in listening.bodies] == ["orders/2/0", "orders/2/1"]
        assert (len(away.posts), outboxes.is_empty) == (1, False)
        clock.elapsed_s += outboxes.due_in_s()
        outboxes.send()
        assert [body["id"] for body in away.bodies] == ["orders/2/0", "orders/2/0", "orders/2/1"]
    assert outboxes.is_empty
    assert sorted(settled) == [(number, Settlement.DELIVERED) for number in (0, 0, 1, 1)]


def test_some_receivers_can_be_left_out() -> None:
    clock = ManualClock()
    with Receiver().listening() as listening:
        outboxes = Outboxes([notifier("webhook", url=listening.url)], clock.now, clock.elapsed)
        outboxes.put(notification(), except_for=outboxes.names().values())
        outboxes.send()
        assert listening.posts == []


def test_a_receiver_whose_secret_cannot_be_read_now_gets_the_notification_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    outboxes = Outboxes(
        [Notifier.model_validate({"kind": "slack", "url_from": {"env": "HOOK"}})], clock.now, clock.elapsed
    )
    outboxes.put(notification())
    outboxes.send()
    with Receiver().listening() as listening:
        monkeypatch.setenv("HOOK", listening.url)
        clock.elapsed_s += 1
        outboxes.send()
        assert len(listening.posts) == 1
    assert outboxes.is_empty
