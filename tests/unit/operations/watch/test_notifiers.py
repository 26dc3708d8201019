from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from fleetgauge_core.fleet import Notifier, Secret, SecretError
from fleetgauge_operations.notify.receivers import host, name
from fleetgauge_operations.watch.alertmanager import Alertmanager
from fleetgauge_operations.watch.message_format import Manner
from fleetgauge_operations.watch.messenger import Messenger
from fleetgauge_operations.watch.notifiers import sink
from tests.receiver import Receiver
from tests.unit.operations.watch.tellings import BROKER, Ear, named

MANNER = Manner(None)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as one:
        yield one


def _told(notifier: Notifier) -> None:
    one = sink(notifier, MANNER, Ear().telling())
    one.start()
    one.tell(named())
    one.stop()


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


def test_alertmanager_is_one_and_the_others_are_messengers() -> None:
    telling = Ear().telling()
    assert isinstance(sink(Notifier(kind="alertmanager", url="http://a"), MANNER, telling), Alertmanager)
    assert isinstance(sink(Notifier(kind="webhook", url="http://a"), MANNER, telling), Messenger)


def test_an_address_that_is_a_secret_is_read_as_it_is_now(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = Notifier(kind="slack", url_from=Secret(env="HOOK"))
    with pytest.raises(SecretError, match="HOOK is not set"):
        host(notifier)
    monkeypatch.setenv("HOOK", receiver.url)
    assert host(notifier) == "127.0.0.1"
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
    assert host(notifier) == known_as
    assert "hunter2" not in name(notifier)


def test_two_notifiers_are_two_and_one_is_the_same_after_a_restart() -> None:
    first, again, second = (Notifier(kind="webhook", url=f"http://a/{n}") for n in (1, 1, 2))
    assert name(first) == name(again) != name(second)
    assert name(first.model_copy(update={"burn_in": True})) == name(first)


@pytest.mark.parametrize(
    ("notifier", "words"),
    [
        ({"kind": "webhook"}, "wanted: url, or url_from"),
        (
            {"kind": "slack", "url": "http://a", "url_from": {"env": "HOOK"}},
            "wanted: one of url and url_from",
        ),
        ({"kind": "pagerduty"}, "routing_key goes with pagerduty"),
        (
            {"kind": "webhook", "url": "http://a", "routing_key": {"env": "KEY"}},
            "routing_key goes with pagerduty",
        ),
        ({"kind": "pagerduty", "routing_key": "hunter2"}, "never the secret itself"),
    ],
)
def test_a_notifier_that_cannot_be_reached_is_refused(notifier: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Notifier.model_validate(notifier)


def test_pagerduty_has_an_address_of_its_own() -> None:
    assert (
        Notifier(kind="pagerduty", routing_key=Secret(env="KEY")).address() == "https://events.pagerduty.com"
    )
