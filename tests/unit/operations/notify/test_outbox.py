"""At least once, in order, again until accepted; with a receiver and a clock in memory."""

from collections import deque
from typing import Any

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outbox import Outbox, RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers.endpoint import PostResult
from tests.unit.operations.notify.samples import ManualClock, MemoryReceiver, notification

POOL = urllib3.PoolManager()
POLICY = RetryPolicy()


class Bench:
    """An outbox with its receiver, its clock, and what was settled."""

    def __init__(self, must_resend: bool = False, *answers: PostResult) -> None:
        self.receiver = MemoryReceiver(must_resend, answers=deque(answers))
        self.clock = ManualClock()
        receiver: Any = self.receiver
        self.outbox = Outbox(receiver, self.clock.now, self.clock.elapsed, POLICY)
        self.settled: list[tuple[str, Settlement]] = []

    def put(self, *notifications: Notification) -> None:
        for each in notifications:
            self.outbox.put(each, self._settle_as(each.notification_id))

    def skip(self, name: str) -> None:
        self.outbox.skip(self._settle_as(name))

    def send(self, after_s: float = 0.0, may_send: bool = True) -> bool:
        self.clock.elapsed_s += after_s
        return self.outbox.send(POOL, lambda: may_send)

    def _settle_as(self, name: str) -> Any:
        return lambda settlement: self.settled.append((name, settlement))


def ids(*notifications: Notification) -> list[str]:
    return [each.notification_id for each in notifications]


@given(st.lists(st.sampled_from(PostResult), max_size=30), st.integers(1, 6))
def test_every_notification_is_accepted_in_order_or_rejected_whatever_the_receiver_answers(
    answers: list[PostResult], count: int
) -> None:
    bench = Bench(False, *answers)
    notifications = [notification(number, f"incident-{number}") for number in range(count)]
    bench.put(*notifications)
    for _ in range(len(answers) + 1):
        assert bench.send(POLICY.longest_pause_s)
    assert [name for name, _ in bench.settled] == ids(*notifications)
    assert bench.receiver.accepted == [
        name for name, settlement in bench.settled if settlement is Settlement.DELIVERED
    ]
    rejected = [name for name, settlement in bench.settled if settlement is Settlement.REJECTED]
    assert ids(*bench.outbox.rejected) == rejected
    assert bench.outbox.is_empty


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=20), st.data())
def test_alertmanager_holds_exactly_the_open_incidents_after_any_history(
    history: list[tuple[int, bool]], data: st.DataObject
) -> None:
    bench = Bench(True)
    for number, (incident, firing) in enumerate(history):
        bench.put(notification(number, f"incident-{incident}", firing))
        if data.draw(st.booleans()):
            bench.receiver.answers += data.draw(st.lists(st.just(PostResult.UNAVAILABLE), max_size=2))
            bench.send(POLICY.longest_pause_s)
    bench.receiver.answers.clear()
    bench.send(POLICY.longest_pause_s)
    assert {settlement for _, settlement in bench.settled} == {Settlement.DELIVERED}
    assert len(bench.settled) == len(history)
    latest = dict(history)
    before = len(bench.receiver.posts)
    bench.send(POLICY.resend_every_s)
    sent_again = {name.rsplit("/", 1)[0] for post in bench.receiver.posts[before:] for name in post}
    assert sent_again == {f"incident-{incident}" for incident, firing in latest.items() if firing}


def test_pauses_double_up_to_the_longest_and_start_anew_after_a_success() -> None:
    bench = Bench(False, *[PostResult.UNAVAILABLE] * 9)
    bench.put(notification())
    pauses = []
    for _ in range(9):
        bench.send()
        pauses.append(bench.outbox.due_in_s())
        bench.clock.elapsed_s += bench.outbox.due_in_s()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    bench.send()
    bench.receiver.answers.append(PostResult.UNAVAILABLE)
    bench.put(notification(1))
    bench.send()
    assert bench.outbox.due_in_s() == 0.5


def test_nothing_is_sent_before_the_pause_is_over() -> None:
    bench = Bench(False, PostResult.UNAVAILABLE)
    bench.put(notification())
    bench.send()
    bench.send(0.4)
    assert len(bench.receiver.posts) == 1
    bench.send(0.1)
    assert len(bench.receiver.posts) == 2


def test_what_is_superseded_expires_after_an_hour_and_the_latest_state_never() -> None:
    bench = Bench(False, PostResult.UNAVAILABLE)
    bench.put(notification(0), notification(1, firing=False), notification(2, "another"))
    bench.send()
    bench.send(3_601)
    assert bench.settled == [
        ("orders/2/0", Settlement.EXPIRED),
        ("orders/2/1", Settlement.DELIVERED),
        ("another/2", Settlement.DELIVERED),
    ]
    assert bench.receiver.accepted == ["orders/2/1", "another/2"]


def test_a_notification_that_alone_is_not_accepted_for_an_hour_is_rejected_and_blocks_no_other() -> None:
    bench = Bench()
    bench.receiver.unavailable_for = {"poison"}
    bench.put(notification(0, "poison"), notification(1, "another"))
    bench.send()
    bench.send(3_500)
    assert bench.settled == []
    bench.send(101)
    assert bench.settled == [("poison/0", Settlement.REJECTED), ("another/1", Settlement.DELIVERED)]
    assert ids(*bench.outbox.rejected) == ["poison/0"]


def test_an_outage_of_the_receiver_rejects_nothing_however_long() -> None:
    bench = Bench(False, *[PostResult.UNAVAILABLE] * 6)
    bench.put(notification(0), notification(1, "another"))
    for _ in range(3):
        bench.send(3_601)
    assert bench.settled == []
    while not bench.outbox.is_empty:
        bench.send(POLICY.longest_pause_s)
    assert bench.receiver.accepted == ["orders/2/0", "another/1"]


@pytest.mark.parametrize("must_resend", [False, True])
def test_a_place_holder_is_settled_in_its_turn(must_resend: bool) -> None:
    bench = Bench(must_resend, PostResult.UNAVAILABLE)
    bench.put(notification(0))
    bench.skip("postponed")
    bench.put(notification(1))
    bench.send()
    assert bench.settled == []
    bench.send(1)
    assert [name for name, _ in bench.settled] == ["orders/2/0", "postponed", "orders/2/1"]
    assert bench.settled[1][1] is Settlement.SKIPPED


def test_a_process_that_may_send_no_more_sends_nothing_and_says_so() -> None:
    bench = Bench()
    bench.put(notification())
    assert not bench.send(may_send=False)
    assert (bench.receiver.posts, bench.settled) == ([], [])


def test_open_alerts_of_an_earlier_process_are_sent_again_only_where_they_would_be_forgotten() -> None:
    for must_resend, posts in ((True, [("orders/2/0",)]), (False, [])):
        bench = Bench(must_resend)
        bench.outbox.resume([notification()])
        bench.send()
        assert bench.receiver.posts == posts
        assert bench.settled == []


def test_an_alert_is_sent_again_every_minute_until_it_is_resolved() -> None:
    bench = Bench(True)
    bench.put(notification(0))
    bench.send()
    assert bench.outbox.due_in_s() == 60
    bench.send(59)
    assert len(bench.receiver.posts) == 1
    bench.send(1)
    assert bench.receiver.posts == [("orders/2/0",)] * 2
    bench.put(notification(1, firing=False))
    bench.send()
    bench.send(120)
    assert bench.receiver.posts[2:] == [("orders/2/1",)]
    assert bench.outbox.due_in_s() == float("inf")


def test_alerts_that_another_process_ended_are_not_sent_again() -> None:
    bench = Bench(True)
    bench.outbox.resume([notification(0), notification(1, "another")])
    bench.put(notification(2, "queued"))
    bench.outbox.stand([notification(1, "another")])
    bench.send()
    assert set(bench.receiver.posts[0]) == {"another/1", "queued/2"}


def test_one_alert_that_is_rejected_keeps_no_other_from_being_accepted_and_is_not_sent_again() -> None:
    bench = Bench(True)
    bench.receiver.rejects = {"bad"}
    bench.put(notification(0), notification(1, "bad"))
    bench.send()
    assert bench.settled == [("orders/2/0", Settlement.DELIVERED), ("bad/1", Settlement.REJECTED)]
    assert ids(*bench.outbox.rejected) == ["bad/1"]
    before = len(bench.receiver.posts)
    bench.send(60)
    assert bench.receiver.posts[before:] == [("orders/2/0",)]


def test_a_receiver_that_is_away_while_alerts_are_told_apart_is_tried_again_with_all() -> None:
    bench = Bench(True, PostResult.REJECTED, PostResult.ACCEPTED, PostResult.UNAVAILABLE)
    bench.put(notification(0), notification(1, "another"))
    bench.send()
    assert bench.settled == []
    bench.send(1)
    assert [settlement for _, settlement in bench.settled] == [Settlement.DELIVERED] * 2


def test_the_latest_hundred_rejected_notifications_are_kept() -> None:
    bench = Bench(False, *[PostResult.REJECTED] * 150)
    bench.put(*(notification(number) for number in range(150)))
    bench.send()
    assert ids(*bench.outbox.rejected) == [f"orders/2/{number}" for number in range(50, 150)]


def test_a_resumed_alert_never_replaces_what_this_process_knows_of_the_incident() -> None:
    bench = Bench(True)
    bench.put(notification(1))
    bench.outbox.resume([notification(0)])
    bench.put(notification(2, "another", firing=False))
    bench.outbox.resume([notification(0, "another")])
    bench.send()
    assert bench.receiver.posts == [("orders/2/1", "another/2")]


def test_an_end_that_is_queued_is_sent_before_the_alert_may_stand_again() -> None:
    bench = Bench(True)
    bench.put(notification(0))
    bench.send()
    bench.put(notification(1, firing=False))
    bench.outbox.stand([notification(0)])
    bench.send()
    assert bench.receiver.posts[-1] == ("orders/2/1",)
    assert bench.settled[-1] == ("orders/2/1", Settlement.DELIVERED)


def test_a_rejected_alert_is_not_sent_again_though_it_stands() -> None:
    bench = Bench(True)
    bench.receiver.rejects = {"orders/2"}
    bench.put(notification(0))
    bench.send()
    for _ in range(3):
        bench.outbox.stand([notification(0)])
        bench.send(60)
    assert bench.receiver.posts == [("orders/2/0",)]


@pytest.mark.parametrize("must_resend", [False, True])
def test_a_rejected_notification_that_is_queued_again_is_rejected_without_being_sent(
    must_resend: bool,
) -> None:
    bench = Bench(must_resend, PostResult.REJECTED)
    bench.put(notification())
    bench.send()
    bench.put(notification())
    bench.send()
    assert bench.settled == [("orders/2/0", Settlement.REJECTED)] * 2
    assert len(bench.receiver.posts) == 1
    assert bench.outbox.is_empty
