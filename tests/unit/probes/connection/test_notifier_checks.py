"""`validate --connect` checks receivers of notifications without notifying anybody."""

from collections.abc import Iterator

import pytest

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import HttpResponse
from fleetgauge_probes.connection.notifier_checks import check_notifiers, evaluate_probe, evaluate_status
from tests.ports import free_port
from tests.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as listening:
        yield listening


@pytest.mark.parametrize("kind", ["webhook", "slack", "heartbeat"])
def test_a_receiver_is_checked_without_a_post(receiver: Receiver, kind: str) -> None:
    (checked,) = check_notifiers([Notifier.model_validate({"kind": kind, "url": receiver.url})])
    (check,) = checked.checks
    assert (checked.notifier, checked.kind, check.ok) == (f"{kind} 127.0.0.1", kind, True)
    assert "fleetgauge notify test" in check.found
    assert receiver.posts == []


def test_all_failures_are_reported_with_their_notifiers() -> None:
    notifiers = [
        Notifier.model_validate({"kind": "webhook", "url": f"http://127.0.0.1:{free_port()}/hunter2"}),
        Notifier.model_validate({"kind": "slack", "url_from": {"env": "NOT_SET_ANYWHERE"}}),
        Notifier.model_validate(
            {
                "kind": "webhook",
                "url": "http://127.0.0.1",
                "name": "hook",
                "bearer": {"env": "NOT_SET_EITHER"},
            }
        ),
    ]
    checks = {checked.notifier: checked.checks[0] for checked in check_notifiers(notifiers)}
    assert [(name, check.ok) for name, check in checks.items()] == [
        ("webhook 127.0.0.1", False),
        ("slack", False),
        ("hook", False),
    ]
    assert checks["webhook 127.0.0.1"].found == "connection refused"
    assert "NOT_SET_ANYWHERE is not set" in checks["slack"].found
    assert "NOT_SET_EITHER is not set" in checks["hook"].found
    assert all(check.mend for check in checks.values())


def test_the_routing_key_of_pagerduty_is_read(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"kind": "pagerduty", "url": receiver.url, "routing_key": {"env": "ROUTING_KEY"}}
    notifier = Notifier.model_validate(settings)
    assert "ROUTING_KEY is not set" in check_notifiers([notifier])[0].checks[0].found
    monkeypatch.setenv("ROUTING_KEY", "hunter2")
    assert check_notifiers([notifier])[0].checks[0].ok
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("status", "may_be_of_proxy", "ok"),
    [
        (200, False, True),
        (501, False, True),
        (503, False, True),
        (407, True, False),
        (503, True, False),
        (500, True, False),
        (403, True, None),
        (404, True, True),
    ],
)
def test_every_status_shows_that_the_host_answers_except_those_of_a_proxy(
    status: int, may_be_of_proxy: bool, ok: bool | None
) -> None:
    assert evaluate_probe(HttpResponse(status, may_be_of_proxy=may_be_of_proxy)).ok is ok


@pytest.mark.parametrize(
    ("status", "ok"), [(200, True), (401, False), (404, False), (302, False), (503, False)]
)
def test_alertmanager_has_to_tell_its_status(status: int, ok: bool) -> None:
    check = evaluate_status(HttpResponse(status))
    assert (check.ok, check.mend is None) == (ok, ok)
