"""An outbox delivers at least once and in order; receiver and clock are in memory."""

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Outbox, RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers.endpoint import PostResult
from tests.unit.operations.notify.samples import ManualClock, MemoryReceiver, build_notification

POLICY = RetryPolicy()


class SimulatedDelivery:
    """An outbox with a receiver and a clock in memory; ``settled`` has the settlements in order."""

    def __init__(self, must_resend: bool = False, *answers: PostResult) -> None:
        self.receiver = MemoryReceiver(must_resend, answers=deque(answers))
        self.clock = ManualClock()
        receiver: Any = self.receiver
        self.outbox = Outbox(receiver, self.clock.now, self.clock.elapsed, POLICY)
        self.settled: list[tuple[str, Settlement]] = []

    def put(self, *notifications: Notification) -> None:
        for notification in notifications:
            self.outbox.put(notification, self._record_settlement(notification.notification_id))

    def skip(self, notification_id: str) -> None:
        self.outbox.skip(self._record_settlement(notification_id))

    def send(self, after_s: float = 0.0, may_send: bool = True) -> bool:
        self.clock.elapsed_s += after_s
        return self.outbox.send(lambda: may_send)

    def _record_settlement(self, notification_id: str) -> Any:
        return lambda settlement: self.settled.append((notification_id, settlement))


def notification_ids(*notifications: Notification) -> list[str]:
    return [notification.notification_id for notification in notifications]


@given(st.lists(st.sampled_from(PostResult), max_size=30), st.integers(1, 6))
def test_every_notification_is_delivered_in_order_or_rejected_whatever_the_receiver_answers(
    answers: list[PostResult], count: int
) -> None:
    delivery = SimulatedDelivery(False, *answers)
    notifications = [build_notification(number, f"incident-{number}") for number in range(count)]
    delivery.put(*notifications)
    for _ in range(len(answers) + 1):
        assert delivery.send(POLICY.longest_pause_s)
    assert [notification_id for notification_id, _ in delivery.settled] == notification_ids(*notifications)
    assert delivery.receiver.accepted == [
        notification_id
        for notification_id, settlement in delivery.settled
        if settlement is Settlement.DELIVERED
    ]
    rejected = [
        notification_id
        for notification_id, settlement in delivery.settled
        if settlement is Settlement.REJECTED
    ]
    assert notification_ids(*delivery.outbox.rejected) == rejected
    assert delivery.outbox.is_empty


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=20), st.data())
def test_exactly_the_open_incidents_are_resent_after_any_history(
    history: list[tuple[int, bool]], data: st.DataObject
) -> None:
    delivery = SimulatedDelivery(True)
    for number, (incident, firing) in enumerate(history):
        delivery.put(build_notification(number, f"incident-{incident}", firing))
        if data.draw(st.booleans()):
            delivery.receiver.answers += data.draw(st.lists(st.just(PostResult.UNAVAILABLE), max_size=2))
            delivery.send(POLICY.longest_pause_s)
    delivery.receiver.answers.clear()
    delivery.send(POLICY.longest_pause_s)
    assert {settlement for _, settlement in delivery.settled} == {Settlement.DELIVERED}
    assert len(delivery.settled) == len(history)
    latest = dict(history)
    posts_before = len(delivery.receiver.posts)
    delivery.send(POLICY.resend_every_s)
    resent = {
        notification_id.rsplit("/", 1)[0]
        for post in delivery.receiver.posts[posts_before:]
        for notification_id in post
    }
    assert resent == {f"incident-{incident}" for incident, firing in latest.items() if firing}


def test_pauses_between_retries_double_up_to_a_maximum_and_are_reset_by_a_success() -> None:
    delivery = SimulatedDelivery(False, *[PostResult.UNAVAILABLE] * 9)
    delivery.put(build_notification())
    pauses = []
    for _ in range(9):
        delivery.send()
        pauses.append(delivery.outbox.due_in_s())
        delivery.clock.elapsed_s += delivery.outbox.due_in_s()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    delivery.send()
    delivery.receiver.answers.append(PostResult.UNAVAILABLE)
    delivery.put(build_notification(1))
    delivery.send()
    assert delivery.outbox.due_in_s() == 0.5


def test_nothing_is_sent_before_the_pause_is_over() -> None:
    delivery = SimulatedDelivery(False, PostResult.UNAVAILABLE)
    delivery.put(build_notification())
    delivery.send()
    delivery.send(0.4)
    assert len(delivery.receiver.posts) == 1
    delivery.send(0.1)
    assert len(delivery.receiver.posts) == 2


def test_a_superseded_notification_expires_after_an_hour_and_the_latest_one_never_does() -> None:
    delivery = SimulatedDelivery(False, PostResult.UNAVAILABLE)
    delivery.put(build_notification(0), build_notification(1, firing=False), build_notification(2, "another"))
    delivery.send()
    delivery.send(3_601)
    assert delivery.settled == [
        ("orders/2/0", Settlement.EXPIRED),
        ("orders/2/1", Settlement.DELIVERED),
        ("another/2", Settlement.DELIVERED),
    ]
    assert delivery.receiver.accepted == ["orders/2/1", "another/2"]


def test_a_notification_that_is_not_accepted_for_an_hour_is_rejected_if_the_next_one_is_accepted() -> None:
    delivery = SimulatedDelivery()
    delivery.receiver.unavailable_for_incidents = {"poison"}
    delivery.put(build_notification(0, "poison"), build_notification(1, "another"))
    delivery.send()
    delivery.send(3_500)
    assert delivery.settled == []
    delivery.send(101)
    assert delivery.settled == [("poison/0", Settlement.REJECTED), ("another/1", Settlement.DELIVERED)]
    assert notification_ids(*delivery.outbox.rejected) == ["poison/0"]


def test_no_notification_is_rejected_during_an_outage_of_the_receiver() -> None:
    delivery = SimulatedDelivery(False, *[PostResult.UNAVAILABLE] * 6)
    delivery.put(build_notification(0), build_notification(1, "another"))
    for _ in range(3):
        delivery.send(3_601)
    assert delivery.settled == []
    while not delivery.outbox.is_empty:
        delivery.send(POLICY.longest_pause_s)
    assert delivery.receiver.accepted == ["orders/2/0", "another/1"]


@pytest.mark.parametrize("must_resend", [False, True])
def test_a_placeholder_is_settled_in_queue_order(must_resend: bool) -> None:
    delivery = SimulatedDelivery(must_resend, PostResult.UNAVAILABLE)
    delivery.put(build_notification(0))
    delivery.skip("postponed")
    delivery.put(build_notification(1))
    delivery.send()
    assert delivery.settled == []
    delivery.send(1)
    assert [notification_id for notification_id, _ in delivery.settled] == [
        "orders/2/0",
        "postponed",
        "orders/2/1",
    ]
    assert delivery.settled[1][1] is Settlement.SKIPPED


def test_nothing_is_sent_by_a_process_that_may_not_send() -> None:
    delivery = SimulatedDelivery()
    delivery.put(build_notification())
    assert not delivery.send(may_send=False)
    assert (delivery.receiver.posts, delivery.settled) == ([], [])


def test_a_batch_ends_when_another_process_takes_over() -> None:
    delivery = SimulatedDelivery(True, PostResult.REJECTED)
    delivery.put(*(build_notification(number, f"incident-{number}") for number in range(4)))
    may_send = iter([True, False])
    delivery.outbox.send(lambda: next(may_send))
    assert (delivery.receiver.accepted, delivery.settled) == ([], [])
    assert delivery.send(POLICY.longest_pause_s)
    assert {settlement for _, settlement in delivery.settled} == {Settlement.DELIVERED}


def test_a_restored_notification_is_as_old_as_its_event() -> None:
    delivery = SimulatedDelivery(False)
    opened, resolved = build_notification(0, "incident"), build_notification(1, "incident", firing=False)
    before = delivery.clock.now() - 2 * POLICY.expires_after
    for notification in (opened, resolved):
        delivery.outbox.put(notification, since=before)
    assert delivery.send()
    assert delivery.receiver.accepted == [resolved.notification_id]


def test_open_alerts_of_an_earlier_process_are_resent_only_to_receivers_that_would_resolve_them() -> None:
    for must_resend, posts in ((True, [("orders/2/0",)]), (False, [])):
        delivery = SimulatedDelivery(must_resend)
        delivery.outbox.resume([build_notification()])
        delivery.send()
        assert delivery.receiver.posts == posts
        assert delivery.settled == []


def test_an_alert_is_resent_every_minute_until_it_is_resolved() -> None:
    delivery = SimulatedDelivery(True)
    delivery.put(build_notification(0))
    delivery.send()
    assert delivery.outbox.due_in_s() == 60
    delivery.send(59)
    assert len(delivery.receiver.posts) == 1
    delivery.send(1)
    assert delivery.receiver.posts == [("orders/2/0",)] * 2
    delivery.put(build_notification(1, firing=False))
    delivery.send()
    delivery.send(120)
    assert delivery.receiver.posts[2:] == [("orders/2/1",)]
    assert delivery.outbox.due_in_s() == float("inf")


def test_alerts_that_another_process_has_resolved_are_not_resent() -> None:
    delivery = SimulatedDelivery(True)
    delivery.outbox.resume([build_notification(0), build_notification(1, "another")])
    delivery.put(build_notification(2, "queued"))
    delivery.outbox.set_firing([build_notification(1, "another")])
    delivery.send()
    assert set(delivery.receiver.posts[0]) == {"another/1", "queued/2"}


def test_a_rejected_alert_does_not_block_the_others_and_is_not_resent() -> None:
    delivery = SimulatedDelivery(True)
    delivery.receiver.rejected_incidents = {"bad"}
    delivery.put(build_notification(0), build_notification(1, "bad"))
    delivery.send()
    assert delivery.settled == [("orders/2/0", Settlement.DELIVERED), ("bad/1", Settlement.REJECTED)]
    assert notification_ids(*delivery.outbox.rejected) == ["bad/1"]
    posts_before = len(delivery.receiver.posts)
    delivery.send(60)
    assert delivery.receiver.posts[posts_before:] == [("orders/2/0",)]


def test_all_alerts_are_retried_if_the_receiver_becomes_unavailable_while_they_are_sent_one_by_one() -> None:
    delivery = SimulatedDelivery(True, PostResult.REJECTED, PostResult.ACCEPTED, PostResult.UNAVAILABLE)
    delivery.put(build_notification(0), build_notification(1, "another"))
    delivery.send()
    assert delivery.settled == []
    delivery.send(1)
    assert [settlement for _, settlement in delivery.settled] == [Settlement.DELIVERED] * 2


def test_the_latest_hundred_rejected_notifications_are_kept() -> None:
    delivery = SimulatedDelivery(False, *[PostResult.REJECTED] * 150)
    delivery.put(*(build_notification(number) for number in range(150)))
    delivery.send()
    assert notification_ids(*delivery.outbox.rejected) == [f"orders/2/{number}" for number in range(50, 150)]


def test_a_resumed_alert_does_not_replace_a_newer_notification_of_its_incident() -> None:
    delivery = SimulatedDelivery(True)
    delivery.put(build_notification(1))
    delivery.outbox.resume([build_notification(0)])
    delivery.put(build_notification(2, "another", firing=False))
    delivery.outbox.resume([build_notification(0, "another")])
    delivery.send()
    assert delivery.receiver.posts == [("orders/2/1", "another/2")]


def test_a_queued_resolution_is_sent_although_its_alert_is_to_be_resent() -> None:
    delivery = SimulatedDelivery(True)
    delivery.put(build_notification(0))
    delivery.send()
    delivery.put(build_notification(1, firing=False))
    delivery.outbox.set_firing([build_notification(0)])
    delivery.send()
    assert delivery.receiver.posts[-1] == ("orders/2/1",)
    assert delivery.settled[-1] == ("orders/2/1", Settlement.DELIVERED)


def test_a_rejected_alert_is_never_resent() -> None:
    delivery = SimulatedDelivery(True)
    delivery.receiver.rejected_incidents = {"orders/2"}
    delivery.put(build_notification(0))
    delivery.send()
    for _ in range(3):
        delivery.outbox.set_firing([build_notification(0)])
        delivery.send(60)
    assert delivery.receiver.posts == [("orders/2/0",)]


@pytest.mark.parametrize("must_resend", [False, True])
def test_a_rejected_notification_that_is_queued_again_is_rejected_without_a_request(
    must_resend: bool,
) -> None:
    delivery = SimulatedDelivery(must_resend, PostResult.REJECTED)
    delivery.put(build_notification())
    delivery.send()
    delivery.put(build_notification())
    delivery.send()
    assert delivery.settled == [("orders/2/0", Settlement.REJECTED)] * 2
    assert len(delivery.receiver.posts) == 1
    assert delivery.outbox.is_empty


def build_many(count: int) -> list[Notification]:
    return [build_notification(number, f"incident-{number}") for number in range(count)]


def test_many_alerts_are_sent_in_several_posts() -> None:
    delivery = SimulatedDelivery(True)
    notifications = build_many(150)
    delivery.put(*notifications)
    delivery.send()
    assert [len(post) for post in delivery.receiver.posts] == [64, 64, 22]
    assert delivery.receiver.accepted == notification_ids(*notifications)
    assert [settlement for _, settlement in delivery.settled] == [Settlement.DELIVERED] * 150


def test_a_post_that_is_too_large_is_split_until_its_parts_are_accepted() -> None:
    delivery = SimulatedDelivery(True)
    delivery.receiver.largest_post = 5
    delivery.receiver.rejected_incidents = {"incident-3"}
    delivery.put(*build_many(20))
    delivery.send()
    assert notification_ids(*delivery.outbox.rejected) == ["incident-3/3"]
    assert len(delivery.receiver.accepted) == 19
    assert len(delivery.receiver.posts) < 20


def test_an_outage_takes_one_post_however_many_alerts_wait() -> None:
    delivery = SimulatedDelivery(True, *[PostResult.UNAVAILABLE] * 3)
    delivery.put(*build_many(150))
    delivery.send()
    assert (len(delivery.receiver.posts), delivery.settled) == (1, [])
    for _ in range(3):
        delivery.send(POLICY.longest_pause_s)
    assert [settlement for _, settlement in delivery.settled] == [Settlement.DELIVERED] * 150


@given(st.integers(1, 200), st.integers(1, 70), st.sets(st.integers(0, 199), max_size=5))
def test_exactly_the_bad_alerts_are_rejected_whatever_a_post_may_contain(
    count: int, largest_post: int, bad: set[int]
) -> None:
    delivery = SimulatedDelivery(True)
    delivery.receiver.largest_post = largest_post
    delivery.receiver.rejected_incidents = {f"incident-{number}" for number in bad}
    delivery.put(*build_many(count))
    delivery.send()
    expected = [f"incident-{number}/{number}" for number in sorted(bad) if number < count]
    assert notification_ids(*delivery.outbox.rejected) == expected
    assert len(delivery.receiver.accepted) == count - len(expected)
