"""Successive watches: each restores its predecessor's state, and a notifier is sent every finding once."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.delivery_cursor import (
    DeliveryCursor,
    NotifierBacklog,
    restore_suppressed_findings,
    start_delivery,
)
from fleetgauge_operations.watch.state_store import DeliveryRecord
from tests.unit.operations.watch.sample_findings import NOON, cleared, opened

FIRST, SECOND = (
    FindingSubject("orders", HealthCondition.BROKER_DOWN, 1),
    FindingSubject("payments", HealthCondition.BROKER_DOWN, 7),
)
INITIAL = DeliveryRecord(notifier="n")


def at(minutes: float, build: Callable[..., Finding] = opened, subject: FindingSubject = FIRST) -> Finding:
    return build(subject, at=NOON + timedelta(minutes=minutes))


class WatchSuccession:
    """One notifier, and watches that are killed: each loses its suppressed findings and its cursor."""

    def __init__(self, record: DeliveryRecord = INITIAL) -> None:
        self.record = record
        self.log: list[Finding] = []
        self.sent: list[str] = []
        self.in_maintenance: set[FindingSubject] = set()
        self.open_subjects: set[FindingSubject] = set()
        self.restart()

    def restart(self) -> None:
        undelivered = self.record.select_undelivered(self.log)
        self.cursor = DeliveryCursor(self.record, undelivered, self._save)
        self.suppressed = restore_suppressed_findings(
            self.log,
            self.open_subjects,
            [NotifierBacklog(self.cursor, undelivered)],
            lambda subject: subject in self.in_maintenance,
        )
        for finding in undelivered:
            if finding.is_alert and finding.subject in self.suppressed:
                self.cursor.postpone(finding)
            else:
                self._send([finding])

    def publish(self, finding: Finding) -> None:
        self.log.append(finding)
        (self.open_subjects.add if finding.is_alert else self.open_subjects.discard)(finding.subject)
        to_notify = self.suppressed.filter_finding(finding, finding.subject in self.in_maintenance)
        self._send(to_notify)
        if not to_notify:
            self.cursor.postpone(finding)

    def set_maintenance(self, *subjects: FindingSubject) -> None:
        self.in_maintenance = set(subjects)
        self._send(self.suppressed.release(lambda subject: subject in self.in_maintenance))

    def _send(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            self.sent.append(finding.event.event_id)
            self.cursor.settle(finding, Settlement.DELIVERED)

    def _save(self, record: DeliveryRecord) -> None:
        self.record = record


def event_ids(*findings: Finding) -> list[str]:
    return [finding.event.event_id for finding in findings]


def test_a_suppressed_alert_is_sent_by_the_next_watch_although_later_ones_were_sent_before() -> None:
    watches = WatchSuccession()
    watches.set_maintenance(FIRST)
    first, second = at(10), at(20, subject=SECOND)
    watches.publish(first)
    watches.publish(second)
    assert watches.sent == event_ids(second)
    watches.in_maintenance = set()
    watches.restart()
    assert watches.sent == event_ids(second, first)
    watches.restart()
    assert watches.sent == event_ids(second, first)


def test_a_suppressed_alert_is_sent_once_and_later_findings_are_not_sent_again() -> None:
    watches = WatchSuccession()
    watches.set_maintenance(FIRST)
    first, second, third = at(10), at(20, subject=SECOND), at(30, cleared, SECOND)
    for finding in (first, second, third):
        watches.publish(finding)
    watches.set_maintenance()
    watches.restart()
    assert watches.sent == event_ids(second, third, first)


def test_an_alert_that_clears_within_its_maintenance_is_never_sent() -> None:
    watches = WatchSuccession()
    watches.set_maintenance(FIRST)
    for finding in (at(10), at(13, cleared), at(20), at(23, cleared)):
        watches.publish(finding)
    watches.set_maintenance()
    watches.restart()
    assert watches.sent == []


def test_a_new_notifier_is_sent_the_open_alerts_alone() -> None:
    log = [at(0), at(1, cleared), at(2, subject=SECOND), at(3), at(4, cleared)]
    record = start_delivery("n", log, {SECOND})
    assert record.select_undelivered(log) == (log[2],)
    assert record.select_undelivered([*log, at(5)]) == (log[2], at(5))
    assert start_delivery("n", [], set()).select_undelivered([at(5)]) == (at(5),)


def cursor_with(*postponed: Finding) -> DeliveryCursor:
    record = DeliveryRecord(notifier="n", owes=tuple(event_ids(*postponed)))
    return DeliveryCursor(record, postponed, lambda _: None)


def test_a_postponed_alert_stays_suppressed_unless_a_notifier_was_sent_it() -> None:
    """A receiver such as Alertmanager, which is resent open alerts, would otherwise resolve it."""
    down = at(10)
    log = [at(0), at(1, cleared), down]
    postponed = NotifierBacklog(cursor_with(down), [down])
    unavailable = NotifierBacklog(cursor_with(), [down])
    delivered = NotifierBacklog(cursor_with(), [])
    for backlogs, is_suppressed in (
        ([postponed], True),
        ([postponed, unavailable], True),
        ([postponed, delivered], False),
        ([unavailable], False),
        ([], False),
    ):
        assert (FIRST in restore_suppressed_findings(log, [FIRST], backlogs, lambda _: True)) is is_suppressed
    assert FIRST not in restore_suppressed_findings(log, [FIRST], [postponed], lambda _: False)
    assert FIRST not in restore_suppressed_findings(log, [], [postponed], lambda _: True)


SUBJECTS = [FIRST, SECOND, FindingSubject("orders", HealthCondition.BROKER_DOWN, 2)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["open or clear", "change kind", "maintenance", "restart"]),
            st.sampled_from(range(3)),
        ),
        max_size=30,
    )
)
def test_across_restarts_every_finding_is_sent_once_in_order_and_every_alert_is_resolved(
    steps: Sequence[tuple[str, int]],
) -> None:
    watches = WatchSuccession()
    for minute, (step, number) in enumerate(steps):
        subject = SUBJECTS[number]
        when = NOON + timedelta(minutes=minute)
        if step == "restart":
            watches.restart()
        elif step == "maintenance":
            watches.set_maintenance(*watches.in_maintenance ^ {subject})
        elif subject not in watches.open_subjects:
            watches.publish(opened(subject, at=when))
        elif step == "change kind":
            watches.publish(opened(subject, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN, when))
        else:
            watches.publish(cleared(subject, at=when))
    watches.set_maintenance()
    watches.restart()
    assert len(watches.sent) == len(set(watches.sent))
    for subject in SUBJECTS:
        findings = {finding.event.event_id: finding for finding in watches.log if finding.subject == subject}
        sent = [findings[event_id] for event_id in watches.sent if event_id in findings]
        assert sent == sorted(sent, key=lambda finding: finding.event.at)
        is_open = bool(sent) and sent[-1].is_alert
        assert is_open is (subject in watches.open_subjects)
        was_open = False
        for finding in sent:
            assert finding.is_alert or was_open
            was_open = finding.is_alert


def test_rejected_events_are_kept_for_the_next_watch_and_not_sent_again() -> None:
    records: list[DeliveryRecord] = []
    cursor = DeliveryCursor(INITIAL, [], records.append)
    for minute in range(120):
        cursor.settle(at(minute), Settlement.REJECTED)
    assert cursor.rejected == tuple(at(minute).event.event_id for minute in range(20, 120))
    (*_, record) = records
    assert record.select_undelivered([at(minute) for minute in range(120)]) == ()
    assert DeliveryCursor(record, [], records.append).rejected == cursor.rejected
