"""Findings are delivered to a real HTTP server, whatever it responds."""

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Notifier, Secret
from fleetgauge_core.http import redirect_target
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from tests.ports import free_port
from tests.receiver import Answer, Receiver
from tests.unit.operations.watch.sample_findings import NOON, PATH, DeliveryRecorder, cleared, opened
from tests.waiting import wait_until

DEADLINE_S = 30
DOWN, RECOVERED = opened(), cleared()
DELIVERED, REJECTED, EXPIRED = Settlement.DELIVERED, Settlement.REJECTED, Settlement.EXPIRED
QUICK = RetryPolicy(first_pause_s=0.05)


def _start_sink(url: str, recorder: DeliveryRecorder, policy: RetryPolicy | None = None) -> FindingSink:
    notifier = Notifier(kind="webhook", url=url)
    sink = open_sink(notifier, FindingFormat(None), recorder.context(), policy or RetryPolicy())
    sink.start()
    return sink


def _send(url: str, recorder: DeliveryRecorder, *findings: Finding) -> None:
    """Notify of the findings, and stop."""
    sink = _start_sink(url, recorder)
    for finding in findings:
        sink.notify(finding)
    sink.stop()


def _received_ids(receiver: Receiver) -> list[str]:
    return [body["id"] for body in receiver.bodies]


def test_findings_are_delivered_in_order_and_all_of_them_before_a_stop(receiver: Receiver) -> None:
    findings = [opened(at=NOON + timedelta(seconds=number)) for number in range(20)]
    recorder = DeliveryRecorder()
    _send(receiver.url, recorder, *findings)
    assert _received_ids(receiver) == [finding.event.event_id for finding in findings]
    assert {post.content_type for post in receiver.posts} == {"application/json"}
    assert (recorder.settled, recorder.waiting) == (
        [(event_id, DELIVERED) for event_id in _received_ids(receiver)],
        0,
    )


def test_a_sink_without_findings_stops(receiver: Receiver) -> None:
    _send(receiver.url, DeliveryRecorder())
    assert receiver.bodies == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_transient_error_is_retried_with_the_same_id(receiver: Receiver, status: int) -> None:
    receiver.answers, recorder = [status], DeliveryRecorder()
    sink = _start_sink(receiver.url, recorder)
    sink.notify(DOWN)
    wait_until(lambda: recorder.settlements == [DELIVERED], DEADLINE_S, "the delivery")
    sink.stop()
    assert _received_ids(receiver) == [DOWN.event.event_id] * 2


def test_a_rejection_is_logged_and_does_not_block_the_next_finding(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, recorder = [400], DeliveryRecorder()
    _send(receiver.url, recorder, DOWN, RECOVERED)
    assert recorder.settlements == [REJECTED, DELIVERED]
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
def test_a_login_redirect_and_an_invalid_key_are_retried(
    receiver: Receiver, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, recorder = [answer], DeliveryRecorder()
    sink = _start_sink(receiver.url, recorder)
    with caplog.at_level(logging.INFO):
        sink.notify(DOWN)
        wait_until(lambda: recorder.settlements == [DELIVERED], DEADLINE_S, "the delivery")
    sink.stop()
    assert [post.path for post in receiver.posts] == ["/hook", "/hook"]
    assert "/hook" not in caplog.text


def test_redirects_are_followed_within_the_same_host_alone(receiver: Receiver) -> None:
    receiver.answers, recorder = [Answer(308, location="/moved")], DeliveryRecorder()
    _send(receiver.url, recorder, DOWN)
    assert [post.path for post in receiver.posts] == ["/hook", "/moved"]
    assert (_received_ids(receiver), recorder.settlements) == ([DOWN.event.event_id] * 2, [DELIVERED])
    receiver.answers = [Answer(307, location="http://localhost:1/elsewhere")]
    _send(receiver.url, recorder, RECOVERED)
    assert {post.path for post in receiver.posts[2:]} == {"/hook"}


@pytest.mark.parametrize("location", ["https://[bad/", "http://hooks.example.com/hook", "//", ""])
def test_unsafe_redirects_are_not_followed(location: str) -> None:
    assert redirect_target("https://hooks.example.com/services/S", location) in (
        None,
        "https://hooks.example.com/services/S",
    )
    assert redirect_target("http://h/a", "https://h/b") == "https://h/b"


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://h:9093/a", "https://h:4444/a"),
        ("https://h/a", "https://h:444/"),
        ("http://h:80/", "https://h:444/"),
    ],
)
def test_a_login_never_goes_to_another_port_of_the_host(url: str, location: str) -> None:
    assert redirect_target(url, location) is None
    assert redirect_target("https://h:443/a", "https://h/b") == "https://h/b"


@pytest.mark.parametrize(
    "address",
    [lambda port: f"http://127.0.0.1:{port}/hunter2", lambda _: "http://[hunter2", lambda _: "http://"],
    ids=["refused connection", "not an address", "no host"],
)
def test_undeliverable_findings_stay_unsettled_and_are_logged_without_the_url(
    address: Callable[[int], str], caplog: pytest.LogCaptureFixture
) -> None:
    recorder = DeliveryRecorder()
    _send(address(free_port()), recorder, DOWN, RECOVERED)
    assert (recorder.settled, recorder.waiting) == ([], 2)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("fleetgauge.")]
    assert messages
    assert all("not delivered" in message and "hunter2" not in message for message in messages)


def _recorder_an_hour_later() -> DeliveryRecorder:
    """Return a recorder by whose clock the findings of noon are older than the expiry, whenever queued."""
    later = NOON + RetryPolicy().expires_after + timedelta(seconds=1)
    return DeliveryRecorder(clock=lambda: later)


def test_a_superseded_finding_expires_after_an_hour_and_the_present_state_is_sent(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = _recorder_an_hour_later()
    _send(receiver.url, recorder, DOWN, RECOVERED)
    assert recorder.settlements == [EXPIRED, DELIVERED]
    assert _received_ids(receiver) == [RECOVERED.event.event_id]
    assert f"webhook: {DOWN.event.event_id} expired" in caplog.text


def test_an_open_alert_never_expires(
    receiver: Receiver,
) -> None:
    receiver.answers, recorder = [503, 404], _recorder_an_hour_later()
    sink = _start_sink(receiver.url, recorder, QUICK)
    sink.notify(DOWN)
    wait_until(lambda: recorder.settlements == [DELIVERED], DEADLINE_S, "the delivery")
    sink.stop()
    assert _received_ids(receiver) == [DOWN.event.event_id] * 3


def test_a_finding_is_postponed_in_order(receiver: Receiver) -> None:
    recorder = DeliveryRecorder()
    sink = _start_sink(receiver.url, recorder)
    sink.notify(DOWN)
    sink.postpone(opened(PATH))
    sink.notify(RECOVERED)
    sink.stop()
    assert (_received_ids(receiver), recorder.postponed) == (
        [DOWN.event.event_id, RECOVERED.event.event_id],
        [opened(PATH)],
    )


def test_nothing_is_sent_without_leadership(receiver: Receiver) -> None:
    recorder = DeliveryRecorder(is_leader=False)
    _send(receiver.url, recorder, DOWN, RECOVERED)
    assert receiver.bodies == []
    assert recorder.settled == []


def test_an_alert_that_an_earlier_watch_sent_is_not_sent_again(receiver: Receiver) -> None:
    recorder = DeliveryRecorder()
    sink = _start_sink(receiver.url, recorder)
    sink.resume([(DOWN.subject, DOWN.to_state)])
    sink.notify(RECOVERED)
    sink.stop()
    assert _received_ids(receiver) == [RECOVERED.event.event_id]


def test_a_missing_secret_is_read_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = DeliveryRecorder()
    notifier = Notifier(kind="slack", url_from=Secret(env="HOOK"))
    sink = open_sink(notifier, FindingFormat(None), recorder.context(), QUICK)
    sink.start()
    sink.notify(DOWN)
    wait_until(lambda: "HOOK is not set" in caplog.text, DEADLINE_S, "the log line")
    monkeypatch.setenv("HOOK", receiver.url)
    wait_until(lambda: recorder.settlements == [DELIVERED], DEADLINE_S, "the delivery")
    sink.stop()
    assert caplog.record_tuples[0][:2] == ("fleetgauge.notify", logging.ERROR)
