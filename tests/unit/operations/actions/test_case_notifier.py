"""Which receivers are notified of a case, how often, and what the next process knows of it."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.tables import ActionKind, ActionOutcome
from fleetgauge_operations.actions.case_notifier import CaseNotifier
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.notify.outbox import RetryPolicy
from fleetgauge_operations.notify.outboxes import RESENT, Outboxes
from tests.alertmanager import RunningAlertmanager, messages
from tests.receiver import Receiver
from tests.unit.operations.mitigation.simulated_cluster import NOON
from tests.waiting import wait_until

DEADLINE_S = 30
MINUTE = timedelta(minutes=1)
NO_PAUSES = RetryPolicy(first_pause_s=0, longest_pause_s=0, resend_every_s=0.2)
#: ``told`` is empty: receivers are to be notified, and none has been yet.
REFUSED = ActionCase(
    "c1",
    ActionKind.DEMOTE,
    "orders",
    2,
    "zone-2",
    "fleetgauge",
    "DEGRADED",
    NOON,
    ActionOutcome.REFUSED,
    accepted_by=(),
)
FAILED = replace(
    REFUSED,
    outcome=ActionOutcome.FAILED,
    explanations=("after 5 s: broker 2 still leads 1 of its partitions",),
)


class MemoryCaseStore:
    """Cases in memory, which outlive the processes of a test."""

    def __init__(self, *cases: ActionCase) -> None:
        self.cases = {case.case_id: case for case in cases}
        self.error: TableStoreError | None = None

    def read_cases(self) -> list[ActionCase]:
        return list(self.cases.values())

    def update_case(self, case: ActionCase) -> None:
        self.cases[case.case_id] = case

    def amend_case(self, case_id: str, change: Callable[[ActionCase], ActionCase | None]) -> None:
        if self.error:
            raise self.error
        changed = change(self.cases[case_id])
        if changed:
            self.cases[case_id] = changed


def build_webhook(receiver: Receiver) -> Notifier:
    return Notifier(kind="webhook", url=receiver.url)


def build_alertmanager(alertmanager: RunningAlertmanager) -> Notifier:
    return Notifier(kind="alertmanager", url=alertmanager.url)


def start_process(
    store: MemoryCaseStore,
    *notifiers: Notifier,
    clock: Callable[[], datetime] = lambda: NOON,
) -> CaseNotifier:
    """Return the case notifier of a new process."""
    return CaseNotifier(store, Outboxes(notifiers, clock, time.monotonic, RESENT, NO_PAUSES), clock)


def run_round(notifier: CaseNotifier, store: MemoryCaseStore) -> None:
    """Notify receivers of the stored cases, as each round of `mitigate run` does."""
    notifier.notify(store.read_cases())
    notifier.send()


def received_kinds(receiver: Receiver) -> list[str]:
    return [body["kind"] for body in receiver.bodies]


def utc_now() -> datetime:
    return datetime.now(UTC)


def test_every_receiver_is_notified_once_and_its_acceptance_is_stored(receiver: Receiver) -> None:
    store = MemoryCaseStore(REFUSED)
    notifier = start_process(store, build_webhook(receiver))
    for _ in range(3):
        run_round(notifier, store)
    run_round(start_process(store, build_webhook(receiver)), store)
    assert received_kinds(receiver) == ["MITIGATION_REFUSED"]
    assert store.cases["c1"].accepted_by == ("127.0.0.1",)


def test_each_new_state_of_a_case_is_notified(receiver: Receiver) -> None:
    store = MemoryCaseStore(REFUSED)
    notifier = start_process(store, build_webhook(receiver))
    run_round(notifier, store)
    store.update_case(replace(store.cases["c1"], accepted_by=(), ended=NOON))
    run_round(notifier, store)
    assert [body["status"] for body in receiver.bodies] == ["firing", "resolved"]


def test_the_next_process_notifies_a_receiver_that_was_unavailable(receiver: Receiver) -> None:
    with Receiver().listening() as unavailable:
        unavailable.answers = [503]
        store = MemoryCaseStore(REFUSED)
        run_round(start_process(store, build_webhook(receiver), build_webhook(unavailable)), store)
        assert len(store.cases["c1"].accepted_by or ()) == 1
        run_round(start_process(store, build_webhook(receiver), build_webhook(unavailable)), store)
        assert received_kinds(unavailable) == ["MITIGATION_REFUSED"] * 2
        assert {body["id"] for body in unavailable.bodies} == {"c1/refused"}
    assert received_kinds(receiver) == ["MITIGATION_REFUSED"]
    assert len(store.cases["c1"].accepted_by or ()) == 2


def test_a_rejection_is_stored_and_the_notification_is_not_repeated(receiver: Receiver) -> None:
    receiver.answers = [400]
    store = MemoryCaseStore(FAILED)
    notifier = start_process(store, build_webhook(receiver))
    for _ in range(3):
        run_round(notifier, store)
    run_round(start_process(store, build_webhook(receiver)), store)
    assert received_kinds(receiver) == ["MITIGATION_FAILED"]
    assert (store.cases["c1"].accepted_by, store.cases["c1"].rejected_by) == ((), ("127.0.0.1",))


def test_acceptances_that_cannot_be_stored_are_stored_later_and_nothing_is_sent_twice(
    receiver: Receiver,
) -> None:
    store = MemoryCaseStore(REFUSED)
    store.error = TableStoreError("ops/actions cannot be written")
    notifier = start_process(store, build_webhook(receiver))
    run_round(notifier, store)
    run_round(notifier, store)
    assert store.cases["c1"].accepted_by == ()
    store.error = None
    run_round(notifier, store)
    assert store.cases["c1"].accepted_by == ("127.0.0.1",)
    assert len(receiver.bodies) == 1


def test_a_refusal_is_not_notified_after_a_day_but_a_failure_always_is(receiver: Receiver) -> None:
    three_days_later = NOON + timedelta(days=3)
    store = MemoryCaseStore(REFUSED, replace(FAILED, case_id="c2"))
    run_round(start_process(store, build_webhook(receiver), clock=lambda: three_days_later), store)
    assert received_kinds(receiver) == ["MITIGATION_FAILED"]


def test_an_outage_of_the_audit_log_opens_one_ticket_and_resolves_it(receiver: Receiver) -> None:
    notifier = start_process(MemoryCaseStore(), build_webhook(receiver))
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


def test_every_failed_attempt_to_undo_an_action_is_notified(receiver: Receiver) -> None:
    store = MemoryCaseStore(FAILED)
    notifier = start_process(store, build_webhook(receiver))
    run_round(notifier, store)
    for number in (1, 2):
        store.update_case(replace(FAILED, accepted_by=(), undone_since=NOON + number * MINUTE))
        run_round(notifier, store)
    assert len({body["id"] for body in receiver.bodies}) == len(receiver.bodies) == 3


def test_a_notification_that_expired_behind_a_later_case_is_not_sent_again(receiver: Receiver) -> None:
    now = NOON
    store = MemoryCaseStore(FAILED)
    notifier = start_process(store, build_webhook(receiver), clock=lambda: now)
    receiver.answers = [503]
    run_round(notifier, store)
    later = NOON + 5 * MINUTE
    store.cases["c2"] = replace(FAILED, case_id="c2", outcome=ActionOutcome.DONE, began=later, ended=later)
    notifier.notify(store.read_cases())
    now = NOON + timedelta(hours=2)
    for _ in range(3):
        run_round(notifier, store)
    assert received_kinds(receiver) == ["MITIGATION_FAILED", "MITIGATION_DONE"]


def test_alertmanager_keeps_a_failure_open_until_the_undo_although_the_process_restarts(
    alertmanager: RunningAlertmanager, receiver: Receiver
) -> None:
    store = MemoryCaseStore(replace(FAILED, began=utc_now()))

    def read_end() -> str:
        (alert,) = alertmanager.alerts()
        return str(alert["endsAt"])

    def wait_for_resend(notifier: CaseNotifier) -> None:
        end_before = read_end()

        def is_resent() -> bool:
            run_round(notifier, store)
            return read_end() > end_before

        wait_until(is_resent, DEADLINE_S, "the alert to be sent again")

    with alertmanager.running():
        first = start_process(store, build_alertmanager(alertmanager), clock=utc_now)
        run_round(first, store)
        wait_until(lambda: bool(messages(receiver)), DEADLINE_S, "the page")
        wait_for_resend(first)
        restarted = start_process(store, build_alertmanager(alertmanager), clock=utc_now)
        wait_for_resend(restarted)
        assert messages(receiver) == [("firing", [("MITIGATION", "firing")])]
        store.update_case(
            replace(store.cases["c1"], outcome=ActionOutcome.UNDONE, ended=utc_now(), accepted_by=())
        )
        run_round(restarted, store)
        wait_until(lambda: len(messages(receiver)) > 1, DEADLINE_S, "the resolution")
    # The resolution is sent for every severity that the case may have had.
    ((status, alerts),) = messages(receiver)[1:]
    assert (status, set(alerts)) == ("resolved", {("MITIGATION", "resolved")})


def test_alertmanager_keeps_a_failure_of_an_operator_open_until_another_process_undoes_it(
    alertmanager: RunningAlertmanager,
) -> None:
    store = MemoryCaseStore(replace(FAILED, accepted_by=None, began=utc_now()))
    notifier = start_process(store, build_alertmanager(alertmanager), clock=utc_now)
    with alertmanager.running():
        run_round(notifier, store)
        assert [alert["labels"]["severity"] for alert in alertmanager.alerts()] == ["page"]
        store.update_case(replace(store.cases["c1"], outcome=ActionOutcome.UNDONE, ended=utc_now()))
        run_round(notifier, store)
        end_before = alertmanager.alerts()[0]["endsAt"]
        second_later_s = time.monotonic() + 1
        wait_until(lambda: time.monotonic() > second_later_s, DEADLINE_S, "a second to pass")
        run_round(notifier, store)
        assert alertmanager.alerts()[0]["endsAt"] == end_before


def test_alertmanager_keeps_the_page_of_an_incident_open_but_no_advice_that_was_followed(
    alertmanager: RunningAlertmanager,
) -> None:
    page = replace(FAILED, began=utc_now() - 10 * MINUTE)
    ticket = replace(REFUSED, case_id="c2", began=utc_now(), accepted_by=())
    advice = replace(REFUSED, case_id="c3", broker_id=3, outcome=ActionOutcome.ADVISED, began=utc_now())
    followed = replace(advice, case_id="c4", outcome=ActionOutcome.DONE, began=utc_now())
    store = MemoryCaseStore(page, ticket, advice, followed)
    notifier = start_process(store, build_alertmanager(alertmanager), clock=utc_now)
    with alertmanager.running():
        for _ in range(3):
            run_round(notifier, store)
            wait_until(lambda: notifier.is_due, DEADLINE_S, "the next notification to be due")
        firing = {
            (alert["labels"]["broker"], alert["labels"]["severity"])
            for alert in alertmanager.alerts()
            if alert["endsAt"] > (utc_now() + MINUTE).isoformat()
        }
    assert ("2", "page") in firing
    assert "3" not in {broker for broker, _ in firing}
