"""Who is notified of a case, until when, and what of it survives the process that notifies."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.case_notifier import CaseNotifier
from fleetgauge_operations.mitigation.kafka_cluster import LeadershipTakenError
from fleetgauge_operations.notify.outbox import RetryPolicy
from fleetgauge_operations.notify.outboxes import RESENT, Outboxes
from tests.alertmanager import RunningAlertmanager, messages
from tests.receiver import Receiver
from tests.unit.operations.mitigation.simulated_cluster import NOON
from tests.waiting import wait_until

PATIENCE_S = 30
QUICK = RetryPolicy(first_pause_s=0, longest_pause_s=0, resend_every_s=0.2)
REFUSED = MitigationCase(
    "c1", Action.DEMOTE, "orders", 2, "zone-2", "fleetgauge", "DEGRADED", NOON, CaseOutcome.REFUSED, told=()
)
FAILED = replace(REFUSED, outcome=CaseOutcome.FAILED, words=("broker 2 leads 1 partitions after 5 s",))


class MemoryRecord:
    """ops/actions in memory, which outlives a process."""

    def __init__(self, *cases: MitigationCase) -> None:
        self.cases = {case.case_id: case for case in cases}

    def read_cases(self) -> list[MitigationCase]:
        return list(self.cases.values())

    def update_case(self, case: MitigationCase) -> None:
        self.cases[case.case_id] = case


def webhook(receiver: Receiver) -> Notifier:
    return Notifier(kind="webhook", url=receiver.url)


def process(
    record: MemoryRecord,
    *notifiers: Notifier,
    lead: Callable[[], AbstractContextManager[Any]] = nullcontext,
    clock: Callable[[], datetime] = lambda: NOON,
) -> CaseNotifier:
    """A process that starts now."""
    return CaseNotifier(record, Outboxes(notifiers, clock, time.monotonic, RESENT, QUICK), lead, clock)


def turn(notifier: CaseNotifier, record: MemoryRecord) -> None:
    notifier.notify(record.read_cases())
    notifier.send()


def kinds(receiver: Receiver) -> list[str]:
    return [body["kind"] for body in receiver.bodies]


def test_every_receiver_is_notified_once_and_that_is_recorded(receiver: Receiver) -> None:
    record = MemoryRecord(REFUSED)
    notifier = process(record, webhook(receiver))
    for _ in range(3):
        turn(notifier, record)
    turn(process(record, webhook(receiver)), record)
    assert kinds(receiver) == ["MITIGATION_REFUSED"]
    assert record.cases["c1"].told == ("127.0.0.1",)


def test_a_case_in_a_new_state_is_notified_again(receiver: Receiver) -> None:
    record = MemoryRecord(REFUSED)
    notifier = process(record, webhook(receiver))
    turn(notifier, record)
    record.update_case(replace(record.cases["c1"], told=(), ended=NOON))
    turn(notifier, record)
    assert [body["status"] for body in receiver.bodies] == ["firing", "resolved"]


def test_a_receiver_that_is_away_is_notified_by_whichever_process_runs_then(receiver: Receiver) -> None:
    with Receiver().listening() as away:
        away.answers = [503]
        record = MemoryRecord(REFUSED)
        turn(process(record, webhook(receiver), webhook(away)), record)
        assert len(record.cases["c1"].told or ()) == 1
        turn(process(record, webhook(receiver), webhook(away)), record)
        assert kinds(away) == ["MITIGATION_REFUSED"] * 2
        assert {body["id"] for body in away.bodies} == {"c1/refused"}
    assert kinds(receiver) == ["MITIGATION_REFUSED"]
    assert len(record.cases["c1"].told or ()) == 2


def test_a_receiver_that_answers_400_is_recorded_as_such_and_asked_no_more(receiver: Receiver) -> None:
    receiver.answers = [400]
    record = MemoryRecord(FAILED)
    notifier = process(record, webhook(receiver))
    for _ in range(3):
        turn(notifier, record)
    turn(process(record, webhook(receiver)), record)
    assert kinds(receiver) == ["MITIGATION_FAILED"]
    assert (record.cases["c1"].told, record.cases["c1"].rejected) == ((), ("127.0.0.1",))


def test_receipts_that_cannot_be_recorded_now_are_recorded_later_and_nothing_is_sent_twice(
    receiver: Receiver,
) -> None:
    taken = [True]

    @contextmanager
    def lead() -> Iterator[None]:
        if taken:
            raise LeadershipTakenError("somebody else holds the seat")
        yield

    record = MemoryRecord(REFUSED)
    notifier = process(record, webhook(receiver), lead=lead)
    turn(notifier, record)
    turn(notifier, record)
    assert record.cases["c1"].told == ()
    taken.clear()
    turn(notifier, record)
    assert record.cases["c1"].told == ("127.0.0.1",)
    assert len(receiver.bodies) == 1


def test_a_refusal_is_history_after_a_day_and_a_failure_never(receiver: Receiver) -> None:
    later = NOON + timedelta(days=3)
    record = MemoryRecord(REFUSED, replace(FAILED, case_id="c2"))
    turn(process(record, webhook(receiver), clock=lambda: later), record)
    assert kinds(receiver) == ["MITIGATION_FAILED"]


def test_an_outage_of_the_record_opens_one_ticket_and_closes_it(receiver: Receiver) -> None:
    record = MemoryRecord()
    notifier = process(record, webhook(receiver))
    for _ in range(3):
        notifier.report_outage("orders", "ops/actions: cannot be read")
        notifier.send()
    assert notifier.has_outage("orders")
    for _ in range(3):
        notifier.end_outage("orders")
        notifier.send()
    notifier.end_outage("payments")
    notifier.send()
    assert not notifier.has_outage("orders")
    assert [(body["kind"], body["status"]) for body in receiver.bodies] == [
        ("MITIGATION_STANDS_STILL", "firing"),
        ("MITIGATION_STANDS_STILL", "resolved"),
    ]


def test_a_second_failure_of_an_undo_is_sent_as_well(receiver: Receiver) -> None:
    record = MemoryRecord(FAILED)
    notifier = process(record, webhook(receiver))
    turn(notifier, record)
    for minute in (1, 2):
        record.update_case(replace(FAILED, told=(), undone_since=NOON + timedelta(minutes=minute)))
        turn(notifier, record)
    assert len({body["id"] for body in receiver.bodies}) == len(receiver.bodies) == 3


def test_what_expired_behind_a_later_case_is_not_sent_after_its_end(receiver: Receiver) -> None:
    later = [NOON]
    record = MemoryRecord(FAILED)
    notifier = process(record, webhook(receiver), clock=lambda: later[0])
    receiver.answers = [503]
    turn(notifier, record)
    ended = replace(FAILED, case_id="c2", outcome=CaseOutcome.DONE, began=NOON + timedelta(minutes=5))
    record.cases["c2"] = replace(ended, ended=ended.began)
    notifier.notify(record.read_cases())
    later[0] = NOON + timedelta(hours=2)
    for _ in range(3):
        turn(notifier, record)
    assert kinds(receiver) == ["MITIGATION_FAILED", "MITIGATION_DONE"]


# A real Alertmanager --------------------------------------------------------------------


def now() -> datetime:
    return datetime.now(UTC)


def test_a_failure_pages_until_it_is_undone_and_through_a_restart(
    real: RunningAlertmanager, receiver: Receiver
) -> None:
    alertmanager = Notifier(kind="alertmanager", url=real.url)
    record = MemoryRecord(replace(FAILED, began=now()))

    def ends_at() -> str:
        (alert,) = real.alerts()
        return str(alert["endsAt"])

    def sends_again(notifier: CaseNotifier) -> None:
        before = ends_at()

        def is_later() -> bool:
            turn(notifier, record)
            return ends_at() > before

        wait_until(is_later, PATIENCE_S, "the alert to be sent again")

    with real.running():
        first = process(record, alertmanager, clock=now)
        turn(first, record)
        wait_until(lambda: bool(messages(receiver)), PATIENCE_S, "the page")
        sends_again(first)
        restarted = process(record, alertmanager, clock=now)
        sends_again(restarted)
        assert messages(receiver) == [("firing", [("MITIGATION", "firing")])]
        record.update_case(replace(record.cases["c1"], outcome=CaseOutcome.UNDONE, ended=now(), told=()))
        turn(restarted, record)
        wait_until(lambda: len(messages(receiver)) > 1, PATIENCE_S, "the end")
    # The end is sent under every severity that the case may have had.
    ((status, alerts),) = messages(receiver)[1:]
    assert (status, set(alerts)) == ("resolved", {("MITIGATION", "resolved")})


def test_a_failure_of_what_a_person_did_is_kept_open_and_ends_when_another_process_undoes_it(
    real: RunningAlertmanager,
) -> None:
    record = MemoryRecord(replace(FAILED, told=None, began=now()))
    notifier = process(record, Notifier(kind="alertmanager", url=real.url), clock=now)
    with real.running():
        turn(notifier, record)
        assert [alert["labels"]["severity"] for alert in real.alerts()] == ["page"]
        record.update_case(replace(record.cases["c1"], outcome=CaseOutcome.UNDONE, ended=now()))
        turn(notifier, record)
        before = real.alerts()[0]["endsAt"]
        time_passes = time.monotonic() + 1
        wait_until(lambda: time.monotonic() > time_passes, PATIENCE_S, "a second")
        turn(notifier, record)
        assert real.alerts()[0]["endsAt"] == before


def test_of_several_open_cases_of_an_incident_the_page_stands_and_advice_that_was_followed_does_not(
    real: RunningAlertmanager,
) -> None:
    ticket = replace(REFUSED, case_id="c2", began=now(), told=())
    record = MemoryRecord(replace(FAILED, began=now() - timedelta(minutes=10)), ticket)
    advice = replace(REFUSED, case_id="c3", broker_id=3, outcome=CaseOutcome.ADVISED, began=now())
    record.cases["c3"] = advice
    record.cases["c4"] = replace(advice, case_id="c4", outcome=CaseOutcome.DONE, began=now())
    notifier = process(record, Notifier(kind="alertmanager", url=real.url), clock=now)
    with real.running():
        for _ in range(3):
            turn(notifier, record)
            wait_until(lambda: notifier.is_due, PATIENCE_S, "the next sending")
        firing = {
            (alert["labels"]["broker"], alert["labels"]["severity"])
            for alert in real.alerts()
            if alert["endsAt"] > (now() + timedelta(minutes=1)).isoformat()
        }
    assert ("2", "page") in firing
    assert "3" not in {broker for broker, _ in firing}
