"""Times are milliseconds here and nanoseconds in the ledger; minute 0 holds whatever is due before 60 s."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fleetgauge_probes.agent.ledger import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
    LegLedger,
    MinuteTally,
)
from fleetgauge_probes.agent.standing import Standing
from fleetgauge_probes.contract import Leg

HOME, OTHER = 7, 8
MS = 1_000_000


class Bench:
    """A ledger spoken to in milliseconds."""

    def __init__(self, leg: Leg, leader: int | None = HOME) -> None:
        self.ledger = LegLedger(leg, HOME)
        self.ledger.open_minute(0)
        if leader is not None:
            self.routed(0, leader)

    def sent(self, sequence: int, due: int = 0, lag: int = 0) -> None:
        self.ledger.open_minute(due // 60_000)
        self.ledger.sent(sequence, due * MS, (due + lag) * MS, due // 60_000)

    def acked(self, sequence: int, at: int) -> None:
        self.ledger.delivered(sequence, at * MS, None)

    def failed(self, sequence: int, at: int, code: str = "MSG_TIMED_OUT") -> None:
        self.ledger.delivered(sequence, at * MS, code)

    def received(self, sequence: int, at: int) -> None:
        self.ledger.received(sequence, at * MS)

    def routed(self, at: int, leader: int | None, standing: Standing | None = None) -> None:
        judged = standing or (Standing.LEADS if leader == HOME else Standing.AWAY)
        self.ledger.routed(at * MS, leader, judged)

    def tick(self, at: int) -> None:
        self.ledger.tick(at * MS)

    def closable(self, before: int = 1) -> list[int]:
        return list(self.ledger.closable(before))

    def take(self, minute: int = 0) -> MinuteTally:
        return self.ledger.take(minute)


@pytest.fixture
def client() -> Bench:
    return Bench(Leg.CLIENT)


@pytest.fixture
def leader() -> Bench:
    return Bench(Leg.LEADER)


def keeps_the_contract(tally: MinuteTally, leg: Leg) -> None:
    """What every reader of a record relies on."""
    successes = tally.e2e_us if leg is Leg.CLIENT else tally.ack_us
    failures = sum(tally.produce_failures.values()) + sum(tally.consume_failures.values())
    assert tally.attempted == len(successes) + failures
    assert tally.attempted == len(tally.lag_us)
    assert len(tally.ack_us) == tally.acknowledged <= tally.attempted
    assert len(tally.e2e_us) <= min(tally.acknowledged, tally.received)
    assert tally.received <= tally.attempted
    assert list(tally.ack_us) == sorted(tally.ack_us)
    assert list(tally.e2e_us) == sorted(tally.e2e_us)
    assert all(0 <= us <= 5_000_000 for us in tally.ack_us)
    assert all(0 <= us <= 10_000_000 for us in tally.e2e_us)
    assert tally.lost == sum(tally.consume_failures.values())
    assert "WITHDRAWN" not in tally.produce_failures
    if leg is Leg.LEADER:
        assert tally.e2e_us == ()
        assert tally.received == tally.lost == tally.duplicated == tally.out_of_order == 0
        assert not tally.consume_failures


# The client leg ----------------------------------------------------------------


def test_a_client_probe_succeeds_when_acknowledged_and_received(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 20)
    assert client.closable() == []
    client.received(0, 45)
    assert client.closable() == [0]
    tally = client.take()
    assert (tally.attempted, tally.acknowledged, tally.received) == (1, 1, 1)
    assert (tally.ack_us, tally.e2e_us) == ((20_000,), (45_000,))
    assert not tally.produce_failures
    assert not tally.consume_failures


def test_a_client_probe_may_be_received_before_its_acknowledgement_is_reported(client: Bench) -> None:
    client.sent(0)
    client.received(0, 30)
    assert client.closable() == []
    client.acked(0, 40)
    tally = client.take()
    assert (tally.ack_us, tally.e2e_us) == ((40_000,), (30_000,))


def test_a_client_probe_counts_whoever_leads(client: Bench) -> None:
    client.sent(0)
    client.routed(10, OTHER, Standing.OUT)
    client.acked(0, 20)
    client.received(0, 25)
    assert client.take().e2e_us == (25_000,)


def test_an_acknowledgement_on_the_deadline_counts_and_one_after_it_is_late(client: Bench) -> None:
    for sequence, at_ns in ((0, 5_000_000_000), (1, 5_000_000_001)):
        client.sent(sequence)
        client.received(sequence, 100)
        client.ledger.delivered(sequence, at_ns, None)
    tally = client.take()
    assert tally.ack_us == (5_000_000,)
    assert tally.produce_failures == {ACK_LATE: 1}
    assert (tally.attempted, tally.acknowledged, tally.received) == (2, 1, 2)


def test_what_is_received_on_the_deadline_counts_and_after_it_is_lost_though_it_came(client: Bench) -> None:
    for sequence, at_ns in ((0, 10_000_000_000), (1, 10_000_000_001)):
        client.sent(sequence)
        client.acked(sequence, 5)
        client.ledger.received(sequence, at_ns)
    tally = client.take()
    assert tally.e2e_us == (10_000_000,)
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (2, 2, 1)


def test_a_probe_that_is_acknowledged_and_never_received_is_lost(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    client.tick(10_000)
    assert client.closable() == []
    client.tick(13_001)
    assert client.closable() == [0]
    tally = client.take()
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (1, 0, 1)
    assert tally.ack_us == (5_000,)


def test_a_probe_that_nobody_reports_expires(client: Bench) -> None:
    client.sent(0)
    client.tick(13_001)
    tally = client.take()
    assert tally.produce_failures == {NO_REPORT: 1}
    assert tally.attempted == 1


def test_a_failed_delivery_that_lands_after_all_is_a_failure_and_no_duplicate(client: Bench) -> None:
    client.sent(0)
    client.failed(0, 5_100)
    client.received(0, 6_000)
    tally = client.take()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert (tally.acknowledged, tally.received, tally.duplicated, tally.e2e_us) == (0, 1, 0, ())


def test_a_second_report_on_a_decided_probe_changes_nothing(client: Bench) -> None:
    client.sent(0)
    client.failed(0, 10)
    client.acked(0, 20)
    client.failed(0, 30, "OTHER")
    tally = client.take()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert tally.acknowledged == 0


def test_a_probe_that_comes_twice_is_received_once_and_duplicated_once(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    for at in (10, 11):
        client.received(0, at)
    tally = client.take()
    assert (tally.received, tally.duplicated, tally.e2e_us) == (1, 1, (10_000,))
    assert tally.out_of_order == 0


def test_a_probe_behind_a_later_one_is_out_of_order_and_a_success_all_the_same(client: Bench) -> None:
    for sequence in range(3):
        client.sent(sequence, due=600 * sequence)
        client.acked(sequence, 600 * sequence + 5)
    for sequence in (0, 2, 1):
        client.received(sequence, 1_300 + sequence)
    tally = client.take()
    assert tally.out_of_order == 1
    assert len(tally.e2e_us) == 3


def test_latencies_count_from_the_scheduled_send_so_own_lag_is_inside(client: Bench) -> None:
    client.sent(0, lag=80)
    client.acked(0, 90)
    client.received(0, 95)
    tally = client.take()
    assert (tally.ack_us, tally.e2e_us, tally.lag_us) == ((90_000,), (95_000,), (80_000,))


def test_a_probe_belongs_to_the_minute_it_was_due_in(client: Bench) -> None:
    client.sent(0, due=59_900)
    client.sent(1, due=60_500)
    client.acked(0, 60_600)
    client.received(0, 61_000)
    assert client.closable(2) == [0]
    assert client.take(0).attempted == 1
    assert list(client.ledger.open_minutes()) == [1]


def test_what_was_never_sent_or_was_taken_already_is_ignored(client: Bench) -> None:
    client.received(4, 10)
    client.acked(4, 10)
    client.sent(0)
    client.failed(0, 10)
    client.take()
    client.received(0, 20)
    client.acked(0, 20)
    assert list(client.ledger.open_minutes()) == []


# The leader leg ----------------------------------------------------------------


def test_a_leader_acknowledgement_waits_for_a_look_no_older_than_itself(leader: Bench) -> None:
    leader.sent(0, due=1_000)
    leader.acked(0, 1_005)
    leader.routed(1_004, HOME)
    assert leader.closable() == []
    leader.routed(1_005, HOME)
    tally = leader.take()
    assert (tally.attempted, tally.acknowledged, tally.ack_us) == (1, 1, (5_000,))
    assert (tally.received, tally.e2e_us) == (0, ())


@pytest.mark.parametrize(("judged", "failures"), [(Standing.OUT, {NOT_LEADING: 1}), (Standing.AWAY, {})])
def test_leadership_lost_between_send_and_acknowledgement_fails_an_out_home_and_excuses_an_away_one(
    leader: Bench, judged: Standing, failures: dict[str, int]
) -> None:
    leader.sent(0)
    leader.acked(0, 3_000)
    leader.routed(3_500, OTHER, judged)
    tally = leader.take()
    assert tally.produce_failures == failures
    assert tally.attempted == sum(failures.values())
    assert (tally.acknowledged, tally.ack_us) == (0, ())


def test_an_acknowledgement_across_a_loss_and_return_of_leadership_is_nobodys(leader: Bench) -> None:
    leader.sent(0)
    leader.routed(1_000, OTHER)
    leader.routed(2_000, HOME)
    leader.acked(0, 2_500)
    leader.routed(3_000, HOME)
    assert leader.take().attempted == 0


def test_leadership_that_changes_while_an_acknowledgement_waits_is_not_credited(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 900)
    leader.routed(800, OTHER)
    leader.routed(1_000, HOME)
    assert leader.take().attempted == 0


def test_a_home_that_leads_again_is_credited_for_what_is_sent_from_then_on(leader: Bench) -> None:
    leader.routed(1_000, OTHER)
    leader.routed(2_000, HOME)
    leader.sent(0, due=2_100)
    leader.acked(0, 2_105)
    leader.routed(3_000, HOME)
    tally = leader.take()
    assert tally.ack_us == (5_000,)
    assert tally.led_by == (HOME,)


def test_a_leader_probe_expires_without_a_report(leader: Bench) -> None:
    leader.sent(0)
    leader.tick(5_000)
    assert leader.closable() == []
    leader.tick(8_001)
    assert leader.take().produce_failures == {NO_REPORT: 1}


def test_a_leader_acknowledgement_after_five_seconds_is_late(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 5_001)
    leader.routed(6_000, HOME)
    tally = leader.take()
    assert tally.produce_failures == {ACK_LATE: 1}
    assert tally.acknowledged == 0


@pytest.mark.parametrize(("last_seen", "attempted"), [(HOME, 1), (OTHER, 0)])
def test_without_a_fresh_look_the_last_one_decides_when_patience_ends(
    leader: Bench, last_seen: int, attempted: int
) -> None:
    leader.routed(10, last_seen)
    leader.sent(0, due=20)
    leader.acked(0, 30)
    leader.tick(8_021)
    assert leader.take().attempted == attempted


def test_a_late_look_at_a_probe_that_expired_changes_nothing(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 10)
    leader.tick(8_001)
    leader.routed(9_000, OTHER, Standing.OUT)
    assert leader.take().ack_us == (10_000,)


def test_a_probe_that_an_out_home_cannot_answer_fails_at_once_unsent(leader: Bench) -> None:
    leader.routed(10, OTHER, Standing.OUT)
    leader.ledger.failed_unsent(0, 20 * MS, 23 * MS, 0)
    assert leader.closable() == [0]
    tally = leader.take()
    assert tally.produce_failures == {NOT_LEADING: 1}
    assert (tally.attempted, tally.lag_us) == (1, (3_000,))


def test_the_ledger_knows_whether_the_home_leads() -> None:
    bench = Bench(Leg.LEADER, leader=None)
    assert not bench.ledger.leads
    bench.routed(1, HOME)
    assert bench.ledger.leads
    bench.routed(2, OTHER)
    assert not bench.ledger.leads
    bench.routed(3, None)
    assert not bench.ledger.leads


# Minutes -----------------------------------------------------------------------


def test_a_minute_in_which_nothing_was_due_is_recorded_empty(leader: Bench) -> None:
    assert leader.closable() == [0]
    tally = leader.take()
    assert tally.attempted == 0
    keeps_the_contract(tally, Leg.LEADER)


def test_the_minute_that_runs_is_not_closable(client: Bench) -> None:
    assert client.closable(0) == []


def test_minutes_are_handed_out_oldest_first(client: Bench) -> None:
    for minute in (3, 1, 2):
        client.ledger.open_minute(minute)
    assert client.closable(3) == [0, 1, 2]
    assert list(client.ledger.open_minutes()) == [0, 1, 2, 3]


def test_opening_a_minute_again_keeps_what_it_knows(client: Bench) -> None:
    client.sent(0)
    client.received(0, 1)
    client.received(0, 2)
    client.ledger.open_minute(0)
    client.acked(0, 3)
    assert client.take().duplicated == 1


def test_a_minute_can_be_looked_at_before_it_is_taken(client: Bench) -> None:
    for sequence in range(3):
        client.sent(sequence, 600 * sequence)
    client.acked(0, 5)
    client.received(0, 9)
    stands = client.ledger.tally(0)
    assert (stands.attempted, stands.e2e_us) == (1, (9_000,))
    client.acked(1, 605)
    client.received(1, 610)
    assert client.take().e2e_us == (9_000, 10_000)


def test_probes_undecided_when_their_minute_is_taken_are_left_uncounted(client: Bench) -> None:
    client.sent(0)
    client.sent(1)
    client.failed(1, 5)
    tally = client.take()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


def test_every_broker_that_led_when_a_probe_went_is_named(client: Bench) -> None:
    client.sent(0)
    client.routed(700, OTHER)
    client.sent(1, due=1_200)
    assert client.take().led_by == (HOME, OTHER)


def test_a_minute_tells_the_last_leader_epoch_that_a_probe_was_sent_under(client: Bench) -> None:
    for sequence, epoch in enumerate((4, 6)):
        client.ledger.routed(600 * sequence * MS, HOME, Standing.LEADS, epoch)
        client.sent(sequence, due=600 * sequence + 1)
    client.ledger.routed(59_000 * MS, OTHER, Standing.AWAY, 7)
    assert client.take().leader_epoch == 6


def test_a_minute_under_an_unknown_leader_has_no_epoch() -> None:
    bench = Bench(Leg.CLIENT, leader=None)
    bench.sent(0)
    tally = bench.take()
    assert (tally.led_by, tally.leader_epoch) == ((), None)


# Pulses ------------------------------------------------------------------------


def test_a_pulse_counts_what_is_due_decided_and_outstanding(client: Bench) -> None:
    for sequence in range(4):
        client.sent(sequence, due=600 * sequence)
    for sequence in (0, 1):
        client.acked(sequence, 600 * sequence + 5)
        client.received(sequence, 600 * sequence + 10 * (sequence + 1))
    client.failed(2, 1_900)
    pulse = client.ledger.pulse(3_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (4, 2, 1, 1)
    assert pulse.oldest_outstanding_ms == 1_200
    assert pulse.success_age_ms == 2_400
    assert (pulse.p50_us, pulse.p99_us) == (10_000, 20_000)


def test_a_pulse_before_the_first_probe_knows_no_ages_and_no_quantiles(client: Bench) -> None:
    pulse = client.ledger.pulse(1_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)
    assert (pulse.oldest_outstanding_ms, pulse.success_age_ms, pulse.p50_us, pulse.p99_us) == (None,) * 4


def test_a_pulse_looks_back_fifteen_seconds_and_remembers_the_last_success_for_ever(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    client.received(0, 10)
    client.take()
    client.tick(60_000)
    pulse = client.ledger.pulse(60_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.p50_us) == (0, 0, None)
    assert pulse.success_age_ms == 60_000


def test_a_pulse_still_counts_the_probes_of_a_minute_that_was_taken(client: Bench) -> None:
    client.sent(0, due=59_900)
    client.acked(0, 59_905)
    client.received(0, 59_910)
    client.take()
    pulse = client.ledger.pulse(61_000 * MS)
    assert (pulse.due, pulse.succeeded) == (1, 1)


def test_a_withdrawn_probe_is_in_no_pulse(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 10)
    assert leader.ledger.pulse(20 * MS).outstanding == 1
    leader.routed(100, OTHER, Standing.AWAY)
    pulse = leader.ledger.pulse(200 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)


def test_a_pulse_of_the_leader_leg_measures_the_acknowledgement(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 4)
    leader.routed(900, HOME)
    pulse = leader.ledger.pulse(1_000 * MS)
    assert (pulse.leg, pulse.p99_us) == (Leg.LEADER, 4_000)


# Whatever happens --------------------------------------------------------------

_DELAYS = st.integers(0, 16_000)


@given(
    leg=st.sampled_from(Leg),
    probes=st.lists(
        st.tuples(st.none() | _DELAYS, st.booleans(), st.lists(_DELAYS, max_size=3)), max_size=25
    ),
    looks=st.lists(
        st.tuples(st.integers(0, 40_000), st.sampled_from([HOME, OTHER, None]), st.sampled_from(Standing)),
        max_size=20,
    ),
)
@settings(deadline=None, max_examples=200)
def test_after_any_history_every_probe_that_was_due_is_a_success_or_a_failure(
    leg: Leg,
    probes: list[tuple[int | None, bool, list[int]]],
    looks: list[tuple[int, int | None, Standing]],
) -> None:
    bench = Bench(leg)
    history: list[tuple[int, Callable[[], None]]] = []
    for sequence, (report, good, arrivals) in enumerate(probes):
        due = 600 * sequence
        history.append((due, lambda s=sequence, d=due: bench.sent(s, d)))
        if report is not None:
            tell = bench.acked if good else bench.failed
            history.append((due + report, lambda f=tell, s=sequence, at=due + report: f(s, at)))
        if leg is Leg.CLIENT:
            history += [(due + a, lambda s=sequence, at=due + a: bench.received(s, at)) for a in arrivals]
    for at, who, judged in looks:
        history.append(
            (at, lambda a=at, w=who, j=judged: bench.routed(a, w, Standing.LEADS if w == HOME else j))
        )
    history += [(at, lambda a=at: bench.tick(a)) for at in range(0, 60_000, 2_500)]
    for _, happen in sorted(history, key=lambda event: event[0]):
        happen()
    bench.tick(60_000)
    assert bench.closable() == [0]
    tally = bench.take()
    keeps_the_contract(tally, leg)
    if leg is Leg.CLIENT:
        assert tally.attempted == len(probes)
        in_time = sum(
            good and report is not None and report <= 5_000 and any(a <= 10_000 for a in arrivals)
            for report, good, arrivals in probes
        )
        assert len(tally.e2e_us) == in_time
        assert tally.received == sum(bool(arrivals) for _, _, arrivals in probes)


class LedgerUnderFire(RuleBasedStateMachine):
    """Events in any order, as time goes on; minutes taken as they close."""

    @initialize(leg=st.sampled_from(Leg))
    def begin(self, leg: Leg) -> None:
        self.leg = leg
        self.bench = Bench(leg, leader=None)
        self.now = 0
        self.next = 0
        self.sent_in: dict[int, int] = {}
        self.taken: set[int] = set()

    @rule(ms=st.sampled_from([1, 400, 1_000, 5_000, 14_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.bench.ledger.open_minute(self.now // 60_000)

    @rule()
    def send(self) -> None:
        self.bench.sent(self.next, self.now)
        self.sent_in[self.next] = self.now // 60_000
        self.next += 1

    @precondition(lambda self: self.leg is Leg.LEADER)
    @rule()
    def fail_unsent(self) -> None:
        self.bench.ledger.open_minute(self.now // 60_000)
        self.bench.ledger.failed_unsent(self.next, self.now * MS, self.now * MS, self.now // 60_000)
        self.sent_in[self.next] = self.now // 60_000
        self.next += 1

    @rule(back=st.integers(1, 6), failure=st.sampled_from([None, None, "MSG_TIMED_OUT"]))
    def report(self, back: int, failure: str | None) -> None:
        self.bench.ledger.delivered(self.next - back, self.now * MS, failure)

    @precondition(lambda self: self.leg is Leg.CLIENT)
    @rule(back=st.integers(1, 6))
    def receive(self, back: int) -> None:
        self.bench.received(self.next - back, self.now)

    @rule(who=st.sampled_from([HOME, HOME, OTHER, None]), judged=st.sampled_from(Standing))
    def look(self, who: int | None, judged: Standing) -> None:
        self.bench.routed(self.now, who, Standing.LEADS if who == HOME else judged)

    @rule()
    def tick_and_take(self) -> None:
        self.bench.tick(self.now)
        current = self.now // 60_000
        for minute in self.bench.closable(current):
            assert minute not in self.taken
            self.taken.add(minute)
            stood = self.bench.ledger.tally(minute)
            tally = self.bench.take(minute)
            assert tally == stood
            keeps_the_contract(tally, self.leg)
            due = sum(m == minute for m in self.sent_in.values())
            assert tally.attempted == due if self.leg is Leg.CLIENT else tally.attempted <= due
        assert all(m >= current - 1 for m in self.bench.ledger.open_minutes())

    @invariant()
    def open_minutes_keep_the_contract_as_they_stand(self) -> None:
        for minute in self.bench.ledger.open_minutes():
            keeps_the_contract(self.bench.ledger.tally(minute), self.leg)

    @invariant()
    def pulses_are_consistent(self) -> None:
        pulse = self.bench.ledger.pulse(self.now * MS)
        assert pulse.due <= pulse.succeeded + pulse.failed + pulse.outstanding
        assert (pulse.p50_us is None) == (pulse.p99_us is None) == (pulse.succeeded == 0)
        assert (pulse.oldest_outstanding_ms is None) == (pulse.outstanding == 0)
        if pulse.succeeded:
            assert pulse.success_age_ms is not None
            assert 0 <= pulse.p50_us <= pulse.p99_us  # type: ignore[operator]


LedgerUnderFire.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
test_the_contract_holds_under_any_order_of_events = LedgerUnderFire.TestCase
