"""Notifications to all receivers of a fleet, which are real HTTP servers."""

from typing import Any

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.notify.outboxes import Outboxes, notify_now
from tests.receiver import Receiver
from tests.unit.operations.notify.samples import ManualClock, build_notification


def build_notifier(kind: str, **settings: Any) -> Notifier:
    return Notifier.model_validate({"kind": kind, "url": "http://receiver.example/", **settings})


def test_a_command_makes_three_attempts_and_one_if_the_receiver_rejects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        clock.elapsed_s += seconds

    with Receiver().listening() as unavailable, Receiver().listening() as rejecting:
        unavailable.answers = [503, 503]
        rejecting.answers = [400]
        notifiers = [
            build_notifier("webhook", url=unavailable.url),
            build_notifier("webhook", url=rejecting.url),
            build_notifier("heartbeat"),
        ]
        (delivered,) = notify_now(notifiers, build_notification(), clock.now, clock.elapsed, wait)
        assert delivered.startswith("127.0.0.1 ")
        assert (len(unavailable.posts), len(rejecting.posts)) == (3, 1)
    assert pauses == [1.0, 2.0]
    assert "webhook: orders/2/0 refused with status 400" in caplog.text


def test_an_unreadable_secret_does_not_prevent_the_notification_of_other_receivers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    unreadable = Notifier.model_validate({"kind": "slack", "url_from": {"env": "NOT_SET_ANYWHERE"}})
    with Receiver().listening() as listening:
        notifiers = [unreadable, build_notifier("webhook", url=listening.url)]
        delivered = notify_now(notifiers, build_notification(), clock.now, clock.elapsed, lambda _: None)
    assert delivered == ["127.0.0.1"]
    assert "slack: orders/2/0 not delivered: " in caplog.text


def test_an_unavailable_receiver_delays_no_other_and_is_sent_everything_in_order_later() -> None:
    clock, settled = ManualClock(), []
    with Receiver().listening() as unavailable, Receiver().listening() as listening:
        unavailable.answers = [503]
        outboxes = Outboxes(
            [build_notifier("webhook", url=unavailable.url), build_notifier("webhook", url=listening.url)],
            clock.now,
            clock.elapsed,
        )
        for number in range(2):
            outboxes.put(
                build_notification(number),
                lambda _, settlement, number=number: settled.append((number, settlement)),
            )
        outboxes.put(build_notification(1))
        outboxes.send()
        assert [body["id"] for body in listening.bodies] == ["orders/2/0", "orders/2/1"]
        assert (len(unavailable.posts), outboxes.is_empty) == (1, False)
        clock.elapsed_s += outboxes.due_in_s()
        outboxes.send()
        assert [body["id"] for body in unavailable.bodies] == ["orders/2/0", "orders/2/0", "orders/2/1"]
    assert outboxes.is_empty
    assert sorted(settled) == [(number, Settlement.DELIVERED) for number in (0, 0, 1, 1)]


def test_a_notification_can_be_sent_to_some_receivers_only() -> None:
    clock = ManualClock()
    with Receiver().listening() as listening:
        outboxes = Outboxes([build_notifier("webhook", url=listening.url)], clock.now, clock.elapsed)
        outboxes.put(build_notification(), except_for=outboxes.names().values())
        outboxes.send()
        assert listening.posts == []


def test_receivers_are_named_by_their_notifiers_or_else_by_their_hosts() -> None:
    clock = ManualClock()
    notifiers = [
        build_notifier("webhook", name="oncall"),
        build_notifier("slack"),
        build_notifier("webhook", url="http://chat.example"),
        build_notifier("slack", url="http://other.example", name="chat.example"),
    ]
    names = list(Outboxes(notifiers, clock.now, clock.elapsed).names().values())
    assert names[:2] == ["oncall", "receiver.example"]
    assert len(set(names)) == 4


def test_a_receiver_that_got_its_name_later_is_not_notified_again() -> None:
    clock = ManualClock()
    with Receiver().listening() as listening:
        before = Outboxes([build_notifier("webhook", url=listening.url)], clock.now, clock.elapsed)
        named = build_notifier("webhook", url=listening.url, name="oncall")
        after = Outboxes([named], clock.now, clock.elapsed)
        after.put(build_notification(), except_for=before.names().values())
        after.send()
        assert listening.posts == []


def test_a_notification_is_sent_once_the_secret_of_its_receiver_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    outboxes = Outboxes(
        [Notifier.model_validate({"kind": "slack", "url_from": {"env": "HOOK"}})], clock.now, clock.elapsed
    )
    outboxes.put(build_notification())
    outboxes.send()
    with Receiver().listening() as listening:
        monkeypatch.setenv("HOOK", listening.url)
        clock.elapsed_s += 1
        outboxes.send()
        assert len(listening.posts) == 1
    assert outboxes.is_empty
