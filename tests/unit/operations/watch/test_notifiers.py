"""Each kind of notifier, from its settings to the request that its receiver gets."""

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
from tests.unit.operations.watch.sample_findings import BROKER, DeliveryRecorder, opened


def _open_sink(notifier: Notifier) -> FindingSink:
    return open_sink(notifier, FindingFormat(None), DeliveryRecorder().context(), RetryPolicy())


def _notify(notifier: Notifier) -> None:
    sink = _open_sink(notifier)
    sink.start()
    sink.notify(opened())
    sink.stop()


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_each_kind_of_receiver_is_sent_its_own_format(kind: str, receiver: Receiver) -> None:
    _notify(Notifier.model_validate({"kind": kind, "url": receiver.url}))
    (body,) = receiver.bodies
    assert ("text" in body, "fingerprint" in body) == (kind == "slack", kind == "webhook")


def test_pagerduty_is_sent_the_routing_key_on_its_events_path(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2\n")
    notifier = {"kind": "pagerduty", "url": receiver.url, "routing_key": {"file": tmp_path / "key"}}
    _notify(Notifier.model_validate(notifier))
    (post,) = receiver.posts
    assert (post.path, post.body["routing_key"]) == ("/hook/v2/enqueue", "hunter2")
    assert post.body["dedup_key"] == BROKER.fingerprint


def test_all_notifiers_but_heartbeats_use_an_outbox() -> None:
    assert isinstance(_open_sink(Notifier(kind="heartbeat", url="http://a")), Heartbeat)
    assert isinstance(_open_sink(Notifier(kind="alertmanager", url="http://a")), OutboxSink)


def test_an_address_in_a_secret_is_read_each_time(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = Notifier(kind="slack", url_from=Secret(env="HOOK"))
    with pytest.raises(SecretError, match="HOOK is not set"):
        str(NotificationReceiver(notifier).host)
    monkeypatch.setenv("HOOK", receiver.url)
    assert NotificationReceiver(notifier).host == "127.0.0.1"
    _notify(notifier)
    assert len(receiver.posts) == 1


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://hooks.example.com/services/hunter2?token=hunter2#hunter2", "hooks.example.com"),
        ("https://hooks.example.com:8443/?url=http://hunter2:hunter2@a", "hooks.example.com"),
        ("https://hooks.example.com\\hunter2", "hooks.example.com"),
        ("http://[hunter2", "unknown"),
        ("http://", "unknown"),
    ],
)
def test_the_host_and_key_of_a_notifier_contain_no_secret(url: str, host: str) -> None:
    notifier = Notifier(kind="webhook", url=url)
    assert NotificationReceiver(notifier).host == host
    assert "hunter2" not in receiver_key(notifier)


def test_the_key_of_a_notifier_is_stable_and_unique() -> None:
    first, same, second = (Notifier(kind="webhook", url=f"http://a/{n}") for n in (1, 1, 2))
    assert receiver_key(first) == receiver_key(same) != receiver_key(second)
    assert receiver_key(first.model_copy(update={"burn_in": True})) == receiver_key(first)


def test_the_key_of_a_notifier_is_that_of_earlier_versions() -> None:
    # A changed key would send all open findings again, and forget what was not delivered.
    assert receiver_key(Notifier(kind="webhook", url="https://hooks.example/sre")) == "454af748ebe0009c"
    secret = {"kind": "pagerduty", "routing_key": {"env": "KEY"}, "burn_in": True}
    assert receiver_key(Notifier.model_validate(secret)) == "9345371796b4e3d9"


def test_the_key_changes_with_the_login_but_not_with_name_proxy_and_certificates() -> None:
    def key(**settings: object) -> str:
        return receiver_key(Notifier.model_validate({"kind": "webhook", "url": "http://a", **settings}))

    secret = {"env": "TOKEN"}
    unchanged = {"name": "hook", "proxy": secret, "ca": "a", "certificate": "b", "key": "c"}
    assert key(**unchanged) == key()
    logins = [
        {},
        {"bearer": secret},
        {"bearer": {"env": "OTHER"}},
        {"basic_auth": {"username": "a", "password": secret}},
        {"headers": {"X-Team": "a"}},
        {"headers": {"X-Team": "b"}},
    ]
    assert len({key(**login) for login in logins}) == len(logins)
    assert key(headers={"A": "1", "B": "2"}) == key(headers={"B": "2", "A": "1"})


@pytest.mark.parametrize(
    ("notifier", "message"),
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
def test_an_incomplete_notifier_is_refused(notifier: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Notifier.model_validate(notifier)


def test_pagerduty_has_a_default_address() -> None:
    assert (
        Notifier(kind="pagerduty", routing_key=Secret(env="KEY")).read_url() == "https://events.pagerduty.com"
    )
