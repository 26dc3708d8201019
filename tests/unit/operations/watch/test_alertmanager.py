"""Findings are sent to a real Alertmanager, which notifies a webhook."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from tests.alertmanager import RunningAlertmanager, messages
from tests.receiver import Receiver
from tests.unit.operations.watch import sample_findings
from tests.unit.operations.watch.sample_findings import BROKER, PATH, DeliveryRecorder
from tests.waiting import wait_until

DEADLINE_S = 30
DELIVERED = Settlement.DELIVERED


def utc_now() -> datetime:
    return datetime.now(UTC)


def opened(subject: FindingSubject, state: HealthState, before: HealthState = HealthState.HEALTHY) -> Finding:
    return sample_findings.opened(subject, state, before, utc_now())


def cleared(subject: FindingSubject, state: HealthState) -> Finding:
    return sample_findings.cleared(subject, state, utc_now())


@contextmanager
def running_sink(
    url: str, recorder: DeliveryRecorder, policy: RetryPolicy | None = None
) -> Iterator[FindingSink]:
    notifier = Notifier(kind="alertmanager", url=url)
    sink = open_sink(notifier, FindingFormat(None), recorder.context(), policy or RetryPolicy())
    sink.start()
    yield sink
    sink.stop()


def test_alerts_fire_in_one_group_and_are_resolved(
    alertmanager: RunningAlertmanager, receiver: Receiver
) -> None:
    recorder = DeliveryRecorder(clock=utc_now)
    with alertmanager.running(), running_sink(alertmanager.url, recorder) as sink:
        sink.notify(opened(BROKER, HealthState.BROKER_DOWN, HealthState.SUSPECT))
        sink.notify(opened(PATH, HealthState.PATH))
        both = ("firing", [("BROKER_DOWN", "firing"), ("PATH", "firing")])
        wait_until(lambda: both in messages(receiver), DEADLINE_S, "both in one message")
        sink.notify(cleared(BROKER, HealthState.BROKER_DOWN))
        sink.notify(cleared(PATH, HealthState.PATH))
        wait_until(lambda: messages(receiver)[-1][0] == "resolved", DEADLINE_S, "both to be resolved")
    assert (recorder.settlements, recorder.waiting) == ([DELIVERED] * 4, 0)


def test_a_restarted_watch_neither_resolves_nor_duplicates_an_alert(
    alertmanager: RunningAlertmanager, receiver: Receiver
) -> None:
    recorder = DeliveryRecorder(clock=utc_now)
    with alertmanager.running():
        with running_sink(alertmanager.url, recorder) as sink:
            sink.notify(opened(BROKER, HealthState.BROKER_DOWN))
            wait_until(lambda: bool(messages(receiver)), DEADLINE_S, "the page")
        (before,) = alertmanager.alerts()
        with running_sink(alertmanager.url, recorder) as sink:
            sink.resume([(BROKER, HealthState.BROKER_DOWN)])
            wait_until(
                lambda: alertmanager.alerts()[0]["endsAt"] > before["endsAt"],
                DEADLINE_S,
                "the alert to be resent",
            )
            (after,) = alertmanager.alerts()
            assert (after["fingerprint"], after["startsAt"]) == (before["fingerprint"], before["startsAt"])
            assert messages(receiver) == [("firing", [("BROKER_DOWN", "firing")])]
            sink.notify(cleared(BROKER, HealthState.BROKER_DOWN))
            wait_until(lambda: len(messages(receiver)) > 1, DEADLINE_S, "the resolution")
    assert messages(receiver)[1:] == [("resolved", [("BROKER_DOWN", "resolved")])]
    assert recorder.settlements == [DELIVERED] * 2


def test_an_unavailable_alertmanager_is_sent_the_alert_once_it_is_back(
    alertmanager: RunningAlertmanager, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = DeliveryRecorder(clock=utc_now)
    with running_sink(alertmanager.url, recorder, RetryPolicy(longest_pause_s=0.5)) as sink:
        sink.notify(opened(BROKER, HealthState.BROKER_DOWN))
        wait_until(lambda: "not delivered" in caplog.text, DEADLINE_S, "the failure")
        assert recorder.waiting == 1
        with alertmanager.running():
            wait_until(lambda: bool(messages(receiver)), DEADLINE_S, "the page")
    assert (recorder.settlements, recorder.waiting) == ([DELIVERED], 0)
    assert messages(receiver)[0] == ("firing", [("BROKER_DOWN", "firing")])
    log = [record.getMessage() for record in caplog.records if record.name.startswith("fleetgauge.")]
    assert any("alertmanager: 1 alerts not delivered" in message for message in log)
    assert not any("127.0.0.1" in message for message in log)


def test_an_open_alert_is_resent_before_alertmanager_resolves_it(alertmanager: RunningAlertmanager) -> None:
    policy = RetryPolicy(resend_every_s=0.5)
    with (
        alertmanager.running(),
        running_sink(alertmanager.url, DeliveryRecorder(clock=utc_now), policy) as sink,
    ):
        sink.notify(opened(BROKER, HealthState.BROKER_DOWN))
        wait_until(lambda: bool(alertmanager.alerts()), DEADLINE_S, "the alert")
        first_end = alertmanager.alerts()[0]["endsAt"]
        wait_until(
            lambda: alertmanager.alerts()[0]["endsAt"] > first_end, DEADLINE_S, "the alert to be resent"
        )
        assert len(alertmanager.alerts()) == 1
