import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import chain, repeat

import pytest

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Secret
from fleetgauge_operations.notify import receivers
from fleetgauge_operations.watch import messenger
from fleetgauge_operations.watch.messenger import GIVE_UP_AFTER, Message, Messenger
from tests.ports import free_port
from tests.receiver import Answer, Receiver
from tests.unit.operations.watch.tellings import NOON, PATH, Ear, cleared, named
from tests.waiting import wait_until

PATIENCE_S = 30
DOWN, BACK = named(), cleared()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as one:
        yield one


def _to(url: str, ear: Ear) -> Messenger:
    one = Messenger("webhook", lambda finding: Message(url, {"id": finding.event.event_id}), ear.telling())
    one.start()
    return one


def _send(url: str, ear: Ear, *findings: Finding) -> None:
    """Tell everything, and stop."""
    one = _to(url, ear)
    for finding in findings:
        one.tell(finding)
    one.stop()


def _ids(receiver: Receiver) -> list[str]:
    return [body["id"] for body in receiver.bodies]


def test_findings_arrive_in_order_and_none_is_left_behind_by_a_stop(receiver: Receiver) -> None:
    findings = [named(at=NOON + timedelta(seconds=n)) for n in range(20)]
    ear = Ear()
    _send(receiver.url, ear, *findings)
    assert _ids(receiver) == [one.event.event_id for one in findings]
    assert {post.content_type for post in receiver.posts} == {"application/json"}
    assert (ear.dealt_with, ear.waiting) == ([(one, True) for one in _ids(receiver)], 0)


def test_one_with_nothing_to_say_stops(receiver: Receiver) -> None:
    _send(receiver.url, Ear())
    assert receiver.bodies == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_receiver_that_is_out_for_a_moment_is_told_again_with_the_same_id(
    receiver: Receiver, status: int
) -> None:
    receiver.answers, ear = [status], Ear()
    one = _to(receiver.url, ear)
    one.tell(DOWN)
    wait_until(lambda: ear.taken == [True], PATIENCE_S, "it to be taken")
    one.stop()
    assert _ids(receiver) == [DOWN.event.event_id] * 2


def test_a_refusal_is_logged_and_does_not_hold_up_the_next_finding(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, ear = [400], Ear()
    _send(receiver.url, ear, DOWN, BACK)
    assert ear.taken == [False, True]
    assert [record.getMessage() for record in caplog.records] == [
        f"webhook: event {DOWN.event.event_id} refused with status 400"
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
    receiver.answers, ear = [answer], Ear()
    one = _to(receiver.url, ear)
    with caplog.at_level(logging.INFO):
        one.tell(DOWN)
        wait_until(lambda: ear.taken == [True], PATIENCE_S, "it to be taken")
    one.stop()
    assert [post.path for post in receiver.posts] == ["/hook", "/hook"]
    assert "/hook" not in caplog.text


def test_what_has_moved_at_its_host_is_said_there_and_nowhere_else(receiver: Receiver) -> None:
    receiver.answers, ear = [Answer(308, location="/moved")], Ear()
    _send(receiver.url, ear, DOWN)
    assert [post.path for post in receiver.posts] == ["/hook", "/moved"]
    assert (_ids(receiver), ear.taken) == ([DOWN.event.event_id] * 2, [True])
    receiver.answers = [Answer(307, location="http://localhost:1/elsewhere")]
    _send(receiver.url, ear, BACK)
    assert {post.path for post in receiver.posts[2:]} == {"/hook"}


@pytest.mark.parametrize("location", ["https://[bad/", "http://hooks.example.com/hook", "//", ""])
def test_where_no_secret_may_go_nothing_is_sent(location: str) -> None:
    assert receivers._moved_to("https://hooks.example.com/services/S", location) in (
        None,
        "https://hooks.example.com/services/S",
    )
    assert receivers._moved_to("http://h/a", "https://h/b") == "https://h/b"


@pytest.mark.parametrize(
    "address",
    [lambda port: f"http://127.0.0.1:{port}/hunter2", lambda _: "http://[hunter2", lambda _: "http://"],
    ids=["refused connection", "not an address", "no host"],
)
def test_what_cannot_be_said_is_left_to_the_next_watch_and_logged_without_its_url(
    address: Callable[[int], str], caplog: pytest.LogCaptureFixture
) -> None:
    ear = Ear()
    _send(address(free_port()), ear, DOWN, BACK)
    assert (ear.dealt_with, ear.waiting) == ([], 2)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("fleetgauge.")]
    assert messages
    assert all("not delivered" in one and "hunter2" not in one for one in messages)


def _an_hour_later(*told: Finding) -> Ear:
    """All are told at noon; from then on it is later."""
    later = NOON + GIVE_UP_AFTER + timedelta(seconds=1)
    times = chain([NOON for _ in told], repeat(later))
    return Ear(clock=lambda: next(times))


def test_what_has_changed_again_is_given_up_after_an_hour_and_how_it_stands_is_told(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    ear = _an_hour_later(DOWN, BACK)
    _send(receiver.url, ear, DOWN, BACK)
    assert ear.taken == [False, True]
    assert _ids(receiver) == [BACK.event.event_id]
    assert f"webhook: event {DOWN.event.event_id} given up" in caplog.text


def test_who_is_still_down_when_a_receiver_comes_back_is_told_however_late(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messenger, "_FIRST_PAUSE_S", 0.05)
    receiver.answers, ear = [503, 404], _an_hour_later(DOWN)
    one = _to(receiver.url, ear)
    one.tell(DOWN)
    wait_until(lambda: ear.taken == [True], PATIENCE_S, "it to be taken")
    one.stop()
    assert _ids(receiver) == [DOWN.event.event_id] * 3


def test_what_is_put_off_is_so_in_its_turn(receiver: Receiver) -> None:
    ear = Ear()
    one = _to(receiver.url, ear)
    one.tell(DOWN)
    one.put_off(named(PATH))
    one.tell(BACK)
    one.stop()
    assert (_ids(receiver), ear.put_off) == ([DOWN.event.event_id, BACK.event.event_id], [named(PATH)])


def test_who_may_not_tell_any_more_says_nothing(receiver: Receiver) -> None:
    ear = Ear(may_tell=False)
    _send(receiver.url, ear, DOWN, BACK)
    assert receiver.bodies == []
    assert ear.dealt_with == []


def test_what_an_earlier_watch_named_was_told_by_it(receiver: Receiver) -> None:
    ear = Ear()
    one = _to(receiver.url, ear)
    one.remind([(DOWN.subject, DOWN.to_phase)])
    one.tell(BACK)
    one.stop()
    assert _ids(receiver) == [BACK.event.event_id]


def test_a_secret_that_is_away_is_waited_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(messenger, "_FIRST_PAUSE_S", 0.05)
    secret = Secret(env="HOOK")
    ear = Ear()
    one = Messenger("slack", lambda _: Message(secret.read(), {}), ear.telling())
    one.start()
    one.tell(DOWN)
    wait_until(lambda: "HOOK is not set" in caplog.text, PATIENCE_S, "it to be missed")
    monkeypatch.setenv("HOOK", receiver.url)
    wait_until(lambda: ear.taken == [True], PATIENCE_S, "it to be taken")
    one.stop()
    assert caplog.record_tuples[0][:2] == ("fleetgauge.watch", logging.ERROR)
