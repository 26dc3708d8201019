from pathlib import Path

import pytest
from pydantic import ValidationError

from fleetgauge_core.fleet import Notifier, Secret, SecretError
from fleetgauge_operations.notify.outbox import RetryPolicy
from fleetgauge_operations.notify.receivers import Receiver as NotificationReceiver
from fleetgauge_operations.notify.receivers import receiver_key
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.notifiers import FindingSink, OutboxSink, open_sink
from tests.receiver import Receiver
from tests.unit.operations.watch.sample_findings import BROKER, DeliveryRecorder, named


def _open(notifier: Notifier) -> FindingSink:
    return open_sink(notifier, FindingFormat(None), DeliveryRecorder().telling(), RetryPolicy())


def _told(notifier: Notifier) -> None:
    sink = _open(notifier)
    sink.start()
    sink.notify(named())
    sink.stop()


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_each_kind_is_told_in_its_own_words(kind: str, receiver: Receiver) -> None:
    _told(Notifier.model_validate({"kind": kind, "url": receiver.url}))
    (body,) = receiver.bodies
    assert ("text" in body, "fingerprint" in body) == (kind == "slack", kind == "webhook")


def test_pagerduty_gets_the_key_from_where_it_is_and_on_its_own_path(
    receiver: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("hunter2\n")
    notifier = {"kind": "pagerduty", "url": receiver.url, "routing_key": {"file": tmp_path / "key"}}
    _told(Notifier.model_validate(notifier))
    (post,) = receiver.posts
    assert (post.path, post.body["routing_key"]) == ("/hook/v2/enqueue", "hunter2")
    assert post.body["dedup_key"] == BROKER.fingerprint


def test_a_heartbeat_is_sent_by_itself_and_all_others_have_an_outbox() -> None:
    assert isinstance(_open(Notifier(kind="heartbeat", url="http://a")), Heartbeat)
    assert isinstance(_open(Notifier(kind="alertmanager", url="http://a")), OutboxSink)


def test_an_address_that_is_a_secret_is_read_as_it_is_now(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = Notifier(kind="slack", url_from=Secret(env="HOOK"))
    with pytest.raises(SecretError, match="HOOK is not set"):
        str(NotificationReceiver(notifier).host)
    monkeypatch.setenv("HOOK", receiver.url)
    assert NotificationReceiver(notifier).host == "127.0.0.1"
    _told(notifier)
    assert len(receiver.posts) == 1


@pytest.mark.parametrize(
    ("url", "known_as"),
    [
        ("https://hooks.example.com/services/hunter2?token=hunter2#hunter2", "hooks.example.com"),
        ("https://hunter2:hunter2@hooks.example.com:8443/", "hooks.example.com"),
        ("https://hooks.example.com\\hunter2", "hooks.example.com"),
        ("http://[hunter2", "unknown"),
        ("http://", "unknown"),
    ],
)
def test_a_notifier_is_known_by_its_host_and_by_nothing_that_may_be_secret(url: str, known_as: str) -> None:
    notifier = Notifier(kind="webhook", url=url)
    assert NotificationReceiver(notifier).host == known_as
    assert "hunter2" not in receiver_key(notifier)


def test_two_notifiers_are_two_and_one_is_the_same_after_a_restart() -> None:
    first, again, second = (Notifier(kind="webhook", url=f"http://a/{n}") for n in (1, 1, 2))
    assert receiver_key(first) == receiver_key(again) != receiver_key(second)
    assert receiver_key(first.model_copy(update={"burn_in": True})) == receiver_key(first)


@pytest.mark.parametrize(
    ("notifier", "words"),
    [
        ({"kind": "webhook"}, "give url, or url_from"),
        (
            {"kind": "slack", "url": "http://a", "url_from": {"env": "HOOK"}},
            "give either url or url_from",
        ),
        ({"kind": "pagerduty"}, "routing_key is required for kind pagerduty"),
        (
            {"kind": "webhook", "url": "http://a", "routing_key": {"env": "KEY"}},
            "routing_key is required for kind pagerduty",
        ),
        ({"kind": "pagerduty", "routing_key": "hunter2"}, "never the secret itself"),
    ],
)
def test_a_notifier_that_cannot_be_reached_is_refused(notifier: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Notifier.model_validate(notifier)


def test_pagerduty_has_an_address_of_its_own() -> None:
    assert (
        Notifier(kind="pagerduty", routing_key=Secret(env="KEY")).read_url() == "https://events.pagerduty.com"
    )
