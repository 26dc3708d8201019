"""What holds whatever happens to a ledger, in whatever order."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import Standing
from tests.unit.probes.agent.ledger_bench import HOME, MS, OTHER, Bench, keeps_the_contract

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
    assert tally.left_out == 0
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

    @rule(ms=st.sampled_from([100, 2_000, 30_000]))
    def stall(self, ms: int) -> None:
        self.bench.stalled(self.now, self.now + ms)
        self.time_passes(ms)

    @rule(lag=st.sampled_from([0, 0, 99, 100, 4_000]))
    def send(self, lag: int) -> None:
        self.time_passes(lag)
        self.bench.sent(self.next, self.now - lag, lag)
        self.sent_in[self.next] = (self.now - lag) // 60_000
        self.next += 1

    @precondition(lambda self: self.leg is Leg.LEADER)
    @rule()
    def fail_unsent(self) -> None:
        self.bench.ledger.open_minute(self.now // 60_000)
        self.bench.ledger.failed_unsent(self.next, self.now * MS, self.now * MS, self.now // 60_000)
        self.sent_in[self.next] = self.now // 60_000
        self.next += 1

    @rule(back=st.integers(1, 6), failure=st.sampled_from([None, None, "MSG_TIMED_OUT", "QUEUE_FULL"]))
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
            told = tally.attempted + tally.left_out
            assert told == due if self.leg is Leg.CLIENT else told <= due
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
            assert pulse.p50_us is not None
            assert pulse.p99_us is not None
            assert 0 <= pulse.p50_us <= pulse.p99_us


LedgerUnderFire.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
test_the_contract_holds_under_any_order_of_events = LedgerUnderFire.TestCase
