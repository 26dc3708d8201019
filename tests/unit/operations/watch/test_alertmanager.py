"""Findings at a real Alertmanager, which tells a webhook of its own."""

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

PATIENCE_S = 30
DELIVERED = Settlement.DELIVERED


def now() -> datetime:
    return datetime.now(UTC)


def named(subject: FindingSubject, phase: HealthState, before: HealthState = HealthState.HEALTHY) -> Finding:
    return sample_findings.named(subject, phase, before, now())


def cleared(subject: FindingSubject, phase: HealthState) -> Finding:
    return sample_findings.cleared(subject, phase, now())


@contextmanager
def telling(url: str, ear: DeliveryRecorder, policy: RetryPolicy | None = None) -> Iterator[FindingSink]:
    notifier = Notifier(kind="alertmanager", url=url)
    sink = open_sink(notifier, FindingFormat(None), ear.telling(), policy or RetryPolicy())
    sink.start()
    yield sink
    sink.stop()


def test_it_fires_groups_and_resolves(real: RunningAlertmanager, receiver: Receiver) -> None:
    ear = DeliveryRecorder(clock=now)
    with real.running(), telling(real.url, ear) as sink:
        sink.notify(named(BROKER, HealthState.BROKER_DOWN, HealthState.SUSPECT))
        sink.notify(named(PATH, HealthState.PATH))
        both = ("firing", [("BROKER_DOWN", "firing"), ("PATH", "firing")])
        wait_until(lambda: both in messages(receiver), PATIENCE_S, "both in one message")
        sink.notify(cleared(BROKER, HealthState.BROKER_DOWN))
        sink.notify(cleared(PATH, HealthState.PATH))
        wait_until(lambda: messages(receiver)[-1][0] == "resolved", PATIENCE_S, "both to be resolved")
    assert (ear.settlements, ear.waiting) == ([DELIVERED] * 4, 0)


def test_a_watch_that_starts_again_neither_resolves_nor_doubles(
    real: RunningAlertmanager, receiver: Receiver
) -> None:
    ear = DeliveryRecorder(clock=now)
    with real.running():
        with telling(real.url, ear) as sink:
            sink.notify(named(BROKER, HealthState.BROKER_DOWN))
            wait_until(lambda: bool(messages(receiver)), PATIENCE_S, "the page")
        (before,) = real.alerts()
        with telling(real.url, ear) as sink:
            sink.resume([(BROKER, HealthState.BROKER_DOWN)])
            wait_until(
                lambda: real.alerts()[0]["endsAt"] > before["endsAt"], PATIENCE_S, "it to be sent again"
            )
            (after,) = real.alerts()
            assert (after["fingerprint"], after["startsAt"]) == (before["fingerprint"], before["startsAt"])
            assert messages(receiver) == [("firing", [("BROKER_DOWN", "firing")])]
            sink.notify(cleared(BROKER, HealthState.BROKER_DOWN))
            wait_until(lambda: len(messages(receiver)) > 1, PATIENCE_S, "the end")
    assert messages(receiver)[1:] == [("resolved", [("BROKER_DOWN", "resolved")])]
    assert ear.settlements == [DELIVERED] * 2


def test_an_alertmanager_that_is_away_is_told_when_it_comes(
    real: RunningAlertmanager, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    ear = DeliveryRecorder(clock=now)
    with telling(real.url, ear, RetryPolicy(longest_pause_s=0.5)) as sink:
        sink.notify(named(BROKER, HealthState.BROKER_DOWN))
        wait_until(lambda: "not delivered" in caplog.text, PATIENCE_S, "the failure")
        assert ear.waiting == 1
        with real.running():
            wait_until(lambda: bool(messages(receiver)), PATIENCE_S, "the page")
    assert (ear.settlements, ear.waiting) == ([DELIVERED], 0)
    assert messages(receiver)[0] == ("firing", [("BROKER_DOWN", "firing")])
    assert any("alertmanager: 1 alerts not delivered" in one.getMessage() for one in caplog.records)
    assert not any(
        "127.0.0.1" in one.getMessage() for one in caplog.records if one.name.startswith("fleetgauge.")
    )


def test_what_holds_is_sent_again_before_it_ends_by_itself(
    real: RunningAlertmanager,
) -> None:
    with (
        real.running(),
        telling(real.url, DeliveryRecorder(clock=now), RetryPolicy(resend_every_s=0.5)) as sink,
    ):
        sink.notify(named(BROKER, HealthState.BROKER_DOWN))
        wait_until(lambda: bool(real.alerts()), PATIENCE_S, "the alert")
        first = real.alerts()[0]["endsAt"]
        wait_until(lambda: real.alerts()[0]["endsAt"] > first, PATIENCE_S, "it to be sent again")
        assert len(real.alerts()) == 1
