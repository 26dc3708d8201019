import logging
from collections.abc import Callable
from datetime import timedelta
from itertools import chain, repeat

import pytest

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Notifier, Secret
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.notify.receivers.endpoint import redirect_target
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from tests.ports import free_port
from tests.receiver import Answer, Receiver
from tests.unit.operations.watch.sample_findings import NOON, PATH, DeliveryRecorder, cleared, named
from tests.waiting import wait_until

PATIENCE_S = 30
DOWN, BACK = named(), cleared()
DELIVERED, REJECTED, EXPIRED = Settlement.DELIVERED, Settlement.REJECTED, Settlement.EXPIRED
QUICK = RetryPolicy(first_pause_s=0.05)


def _to(url: str, ear: DeliveryRecorder, policy: RetryPolicy | None = None) -> FindingSink:
    notifier = Notifier(kind="webhook", url=url)
    sink = open_sink(notifier, FindingFormat(None), ear.telling(), policy or RetryPolicy())
    sink.start()
    return sink


def _send(url: str, ear: DeliveryRecorder, *findings: Finding) -> None:
    """Tell everything, and stop."""
    one = _to(url, ear)
    for finding in findings:
        one.notify(finding)
    one.stop()


def _ids(receiver: Receiver) -> list[str]:
    return [body["id"] for body in receiver.bodies]


def test_findings_arrive_in_order_and_none_is_left_behind_by_a_stop(receiver: Receiver) -> None:
    findings = [named(at=NOON + timedelta(seconds=n)) for n in range(20)]
    ear = DeliveryRecorder()
    _send(receiver.url, ear, *findings)
    assert _ids(receiver) == [one.event.event_id for one in findings]
    assert {post.content_type for post in receiver.posts} == {"application/json"}
    assert (ear.settled, ear.waiting) == ([(name, DELIVERED) for name in _ids(receiver)], 0)


def test_one_with_nothing_to_say_stops(receiver: Receiver) -> None:
    _send(receiver.url, DeliveryRecorder())
    assert receiver.bodies == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_receiver_that_is_out_for_a_moment_is_told_again_with_the_same_id(
    receiver: Receiver, status: int
) -> None:
    receiver.answers, ear = [status], DeliveryRecorder()
    one = _to(receiver.url, ear)
    one.notify(DOWN)
    wait_until(lambda: ear.settlements == [DELIVERED], PATIENCE_S, "it to be taken")
    one.stop()
    assert _ids(receiver) == [DOWN.event.event_id] * 2


def test_a_refusal_is_logged_and_does_not_hold_up_the_next_finding(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, ear = [400], DeliveryRecorder()
    _send(receiver.url, ear, DOWN, BACK)
    assert ear.settlements == [REJECTED, DELIVERED]
    assert [record.getMessage() for record in caplog.records] == [
        f"webhook: {DOWN.event.event_id} refused with status 400"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(302, location="/login"),
        Answer(400, b'{"status":"invalid event","errors":["Length of \'routing_key\' is incorrect"]}'),
        Answer(400, b'{"message":"Invalid routing key"}'),
    ],
)
def test_what_a_page_to_log_in_at_took_or_a_key_forbade_is_said_again(
    receiver: Receiver, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, ear = [answer], DeliveryRecorder()
    one = _to(receiver.url, ear)
    with caplog.at_level(logging.INFO):
        one.notify(DOWN)
        wait_until(lambda: ear.settlements == [DELIVERED], PATIENCE_S, "it to be taken")
    one.stop()
    assert [post.path for post in receiver.posts] == ["/hook", "/hook"]
    assert "/hook" not in caplog.text


def test_what_has_moved_at_its_host_is_said_there_and_nowhere_else(receiver: Receiver) -> None:
    receiver.answers, ear = [Answer(308, location="/moved")], DeliveryRecorder()
    _send(receiver.url, ear, DOWN)
    assert [post.path for post in receiver.posts] == ["/hook", "/moved"]
    assert (_ids(receiver), ear.settlements) == ([DOWN.event.event_id] * 2, [DELIVERED])
    receiver.answers = [Answer(307, location="http://localhost:1/elsewhere")]
    _send(receiver.url, ear, BACK)
    assert {post.path for post in receiver.posts[2:]} == {"/hook"}


@pytest.mark.parametrize("location", ["https://[bad/", "http://hooks.example.com/hook", "//", ""])
def test_where_no_secret_may_go_nothing_is_sent(location: str) -> None:
    assert redirect_target("https://hooks.example.com/services/S", location) in (
        None,
        "https://hooks.example.com/services/S",
    )
    assert redirect_target("http://h/a", "https://h/b") == "https://h/b"


@pytest.mark.parametrize(
    "address",
    [lambda port: f"http://127.0.0.1:{port}/hunter2", lambda _: "http://[hunter2", lambda _: "http://"],
    ids=["refused connection", "not an address", "no host"],
)
def test_what_cannot_be_said_is_left_to_the_next_watch_and_logged_without_its_url(
    address: Callable[[int], str], caplog: pytest.LogCaptureFixture
) -> None:
    ear = DeliveryRecorder()
    _send(address(free_port()), ear, DOWN, BACK)
    assert (ear.settled, ear.waiting) == ([], 2)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("fleetgauge.")]
    assert messages
    assert all("not delivered" in one and "hunter2" not in one for one in messages)


def _an_hour_later(*told: Finding) -> DeliveryRecorder:
    """All are told at noon; from then on it is later."""
    later = NOON + RetryPolicy().expires_after + timedelta(seconds=1)
    times = chain([NOON for _ in told], repeat(later))
    return DeliveryRecorder(clock=lambda: next(times))


def test_what_has_changed_again_is_given_up_after_an_hour_and_how_it_stands_is_told(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    ear = _an_hour_later(DOWN, BACK)
    _send(receiver.url, ear, DOWN, BACK)
    assert ear.settlements == [EXPIRED, DELIVERED]
    assert _ids(receiver) == [BACK.event.event_id]
    assert f"webhook: {DOWN.event.event_id} expired" in caplog.text


def test_who_is_still_down_when_a_receiver_comes_back_is_told_however_late(
    receiver: Receiver,
) -> None:
    receiver.answers, ear = [503, 404], _an_hour_later(DOWN)
    one = _to(receiver.url, ear, QUICK)
    one.notify(DOWN)
    wait_until(lambda: ear.settlements == [DELIVERED], PATIENCE_S, "it to be taken")
    one.stop()
    assert _ids(receiver) == [DOWN.event.event_id] * 3


def test_what_is_put_off_is_so_in_its_turn(receiver: Receiver) -> None:
    ear = DeliveryRecorder()
    one = _to(receiver.url, ear)
    one.notify(DOWN)
    one.postpone(named(PATH))
    one.notify(BACK)
    one.stop()
    assert (_ids(receiver), ear.put_off) == ([DOWN.event.event_id, BACK.event.event_id], [named(PATH)])


def test_who_may_not_tell_any_more_says_nothing(receiver: Receiver) -> None:
    ear = DeliveryRecorder(may_tell=False)
    _send(receiver.url, ear, DOWN, BACK)
    assert receiver.bodies == []
    assert ear.settled == []


def test_what_an_earlier_watch_named_was_told_by_it(receiver: Receiver) -> None:
    ear = DeliveryRecorder()
    one = _to(receiver.url, ear)
    one.resume([(DOWN.subject, DOWN.to_state)])
    one.notify(BACK)
    one.stop()
    assert _ids(receiver) == [BACK.event.event_id]


def test_a_secret_that_is_away_is_waited_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ear = DeliveryRecorder()
    notifier = Notifier(kind="slack", url_from=Secret(env="HOOK"))
    one = open_sink(notifier, FindingFormat(None), ear.telling(), QUICK)
    one.start()
    one.notify(DOWN)
    wait_until(lambda: "HOOK is not set" in caplog.text, PATIENCE_S, "it to be missed")
    monkeypatch.setenv("HOOK", receiver.url)
    wait_until(lambda: ear.settlements == [DELIVERED], PATIENCE_S, "it to be taken")
    one.stop()
    assert caplog.record_tuples[0][:2] == ("fleetgauge.notify", logging.ERROR)
