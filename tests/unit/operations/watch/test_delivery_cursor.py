"""A life of watches: each takes over what the one before left, and a notifier hears of everything once."""

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
    restore_suppressed_findings,
    start_delivery,
)
from fleetgauge_operations.watch.state_store import DeliveryRecord
from tests.unit.operations.watch.sample_findings import NOON, cleared, named

ONE, TWO = (
    FindingSubject("orders", HealthCondition.BROKER_DOWN, 1),
    FindingSubject("payments", HealthCondition.BROKER_DOWN, 7),
)
NEW = DeliveryRecord(notifier="n")


def at(minutes: float, of: Callable[..., Finding] = named, subject: FindingSubject = ONE) -> Finding:
    return of(subject, at=NOON + timedelta(minutes=minutes))


class Life:
    """One notifier, and watches that are killed: of each its waiting and its account are gone."""

    def __init__(self, note: DeliveryRecord = NEW) -> None:
        self.note = note
        self.log: list[Finding] = []
        self.heard: list[str] = []
        self.planned: set[FindingSubject] = set()
        self.named: set[FindingSubject] = set()
        self.start()

    def start(self) -> None:
        owed = self.note.owed(self.log)
        self.account = DeliveryCursor(self.note, owed, self._keep)
        self.waiting = restore_suppressed_findings(
            self.log, self.named, [(self.account, owed)], lambda subject: subject in self.planned
        )
        for one in owed:
            if one.is_alert and one.subject in self.waiting:
                self.account.put_off(one)
            else:
                self._tell([one])

    def find(self, one: Finding) -> None:
        self.log.append(one)
        (self.named.add if one.is_alert else self.named.discard)(one.subject)
        told = self.waiting.told_of(one, one.subject in self.planned)
        self._tell(told)
        if not told:
            self.account.put_off(one)

    def plan(self, *subjects: FindingSubject) -> None:
        self.planned = set(subjects)
        self._tell(self.waiting.over(lambda subject: subject in self.planned))

    def _tell(self, findings: Sequence[Finding]) -> None:
        for one in findings:
            self.heard.append(one.event.event_id)
            self.account.settle(one, Settlement.DELIVERED)

    def _keep(self, note: DeliveryRecord) -> None:
        self.note = note


def ids(*findings: Finding) -> list[str]:
    return [one.event.event_id for one in findings]


def test_what_waited_while_later_things_were_told_is_told_by_the_next_watch() -> None:
    life = Life()
    life.plan(ONE)
    first, second = at(10), at(20, subject=TWO)
    life.find(first)
    life.find(second)
    assert life.heard == ids(second)
    life.planned = set()
    life.start()
    assert life.heard == ids(second, first)
    life.start()
    assert life.heard == ids(second, first)


def test_what_waited_is_told_once_and_the_later_not_again() -> None:
    life = Life()
    life.plan(ONE)
    first, second, third = at(10), at(20, subject=TWO), at(30, cleared, TWO)
    for one in (first, second, third):
        life.find(one)
    life.plan()
    life.start()
    assert life.heard == ids(second, third, first)


def test_what_began_and_ended_within_its_maintenance_is_never_told() -> None:
    life = Life()
    life.plan(ONE)
    for one in (at(10), at(13, cleared), at(20), at(23, cleared)):
        life.find(one)
    life.plan()
    life.start()
    assert life.heard == []


def test_who_is_new_is_told_of_what_is_open_and_of_nothing_else() -> None:
    log = [at(0), at(1, cleared), at(2, subject=TWO), at(3), at(4, cleared)]
    note = start_delivery("n", log, {TWO})
    assert note.owed(log) == (log[2],)
    assert note.owed([*log, at(5)]) == (log[2], at(5))
    assert start_delivery("n", [], set()).owed([at(5)]) == (at(5),)


def account(*owes: Finding) -> DeliveryCursor:
    return DeliveryCursor(DeliveryRecord(notifier="n", owes=tuple(ids(*owes))), owes, lambda _: None)


def test_what_was_put_off_waits_on_unless_one_was_told_of_it() -> None:
    """Whoever is reminded of what stands, as Alertmanager is, would else take it for over."""
    down, told = at(10), account()
    log, everywhere = [at(0), at(1, cleared), down], lambda _: True
    for owing, waits in (
        ([(account(down), [down])], True),
        ([(account(down), [down]), (account(), [down])], True),
        ([(account(down), [down]), (told, [])], False),
        ([(account(), [down])], False),
        ([], False),
    ):
        assert (ONE in restore_suppressed_findings(log, [ONE], owing, everywhere)) is waits
    assert ONE not in restore_suppressed_findings(log, [ONE], [(account(down), [down])], lambda _: False)
    assert ONE not in restore_suppressed_findings(log, [], [(account(down), [down])], everywhere)


SUBJECTS = [ONE, TWO, FindingSubject("orders", HealthCondition.BROKER_DOWN, 2)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["change", "rename", "plan", "watch"]), st.sampled_from(range(3))),
        max_size=30,
    )
)
def test_however_watches_change_everything_is_told_once_in_its_order_and_has_its_end(
    steps: Sequence[tuple[str, int]],
) -> None:
    life = Life()
    for minute, (what, number) in enumerate(steps):
        subject = SUBJECTS[number]
        when = NOON + timedelta(minutes=minute)
        if what == "watch":
            life.start()
        elif what == "plan":
            life.plan(*life.planned ^ {subject})
        elif subject not in life.named:
            life.find(named(subject, at=when))
        elif what == "rename":
            life.find(named(subject, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN, when))
        else:
            life.find(cleared(subject, at=when))
    life.plan()
    life.start()
    assert len(life.heard) == len(set(life.heard))
    for subject in SUBJECTS:
        own = {one.event.event_id: one for one in life.log if one.subject == subject}
        heard = [own[one] for one in life.heard if one in own]
        assert heard == sorted(heard, key=lambda one: one.event.at)
        stands = bool(heard) and heard[-1].is_alert
        assert stands is (subject in life.named)
        begun = False
        for one in heard:
            assert one.is_alert or begun
            begun = one.is_alert


def test_events_that_were_rejected_for_good_are_kept_for_the_next_watch_and_not_sent_again() -> None:
    notes: list[DeliveryRecord] = []
    account = DeliveryCursor(NEW, [], notes.append)
    for minute in range(120):
        account.settle(at(minute), Settlement.REJECTED)
    assert account.rejected == tuple(at(minute).event.event_id for minute in range(20, 120))
    (*_, note) = notes
    assert note.owed([at(minute) for minute in range(120)]) == ()
    assert DeliveryCursor(note, [], notes.append).rejected == account.rejected
