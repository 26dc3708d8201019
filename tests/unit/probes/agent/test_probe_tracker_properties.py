"""Invariants of the probe tracker under any sequence of events."""

from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import AgentFault, find_agent_fault
from fleetgauge_probes.agent.agent_faults import ProbeFailure
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from tests.unit.probes.agent.tracker_bench import HOME, MS, OTHER, TrackerBench, assert_invariants

_DELAYS = st.integers(0, 16_000)
OWN_CODES = ("QUEUE_FULL", "TOPIC_AUTHORIZATION_FAILED")


@given(
    leg=st.sampled_from(Leg),
    probes=st.lists(
        st.tuples(st.none() | _DELAYS, st.booleans(), st.lists(_DELAYS, max_size=3)), max_size=25
    ),
    routings=st.lists(
        st.tuples(
            st.integers(0, 40_000), st.sampled_from([HOME, OTHER, None]), st.sampled_from(LeaderEligibility)
        ),
        max_size=20,
    ),
)
@settings(deadline=None, max_examples=200)
def test_after_any_history_every_probe_that_was_due_is_a_success_or_a_failure(
    leg: Leg,
    probes: list[tuple[int | None, bool, list[int]]],
    routings: list[tuple[int, int | None, LeaderEligibility]],
) -> None:
    bench = TrackerBench(leg)
    history: list[tuple[int, Callable[[], None]]] = []
    for sequence, (report, is_acknowledged, arrivals) in enumerate(probes):
        due = 600 * sequence
        history.append((due, partial(bench.send, sequence, due)))
        if report is not None:
            deliver = bench.acknowledge if is_acknowledged else bench.fail
            history.append((due + report, partial(deliver, sequence, due + report)))
        if leg is Leg.CLIENT:
            history += [(due + delay, partial(bench.receive, sequence, due + delay)) for delay in arrivals]
    for at, leader, eligibility in routings:
        if_home = LeaderEligibility.LEADING if leader == HOME else eligibility
        history.append((at, partial(bench.route, at, leader, if_home)))
    history += [(at, partial(bench.expire_overdue, at)) for at in range(0, 60_000, 2_500)]
    for _, apply_event in sorted(history, key=lambda event: event[0]):
        apply_event()
    bench.expire_overdue(60_000)
    assert bench.closable_minutes() == [0]
    tally = bench.close_minute()
    assert_invariants(tally, leg)
    assert tally.excluded == 0
    if leg is Leg.CLIENT:
        assert tally.attempted == len(probes)
        in_time_count = sum(
            is_acknowledged
            and report is not None
            and report <= 5_000
            and any(delay <= 10_000 for delay in arrivals)
            for report, is_acknowledged, arrivals in probes
        )
        assert len(tally.e2e_us) == in_time_count
        assert tally.received == sum(bool(arrivals) for _, _, arrivals in probes)


class TrackerStateMachine(RuleBasedStateMachine):
    """Events in any order as time passes; minutes are closed as soon as they can be."""

    @initialize(leg=st.sampled_from(Leg))
    def begin(self, leg: Leg) -> None:
        self.leg = leg
        self.bench = TrackerBench(leg, leader=None)
        self.now = 0
        self.next = 0
        self.sent_in: dict[int, int] = {}
        self.closed: set[int] = set()

    @rule(ms=st.sampled_from([1, 400, 1_000, 5_000, 14_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.bench.tracker.open_minute(self.now // 60_000)

    @rule(ms=st.sampled_from([100, 2_000, 30_000]))
    def pause(self, ms: int) -> None:
        self.bench.pause(self.now, self.now + ms)
        self.time_passes(ms)

    @rule(lag=st.sampled_from([0, 0, 99, 100, 4_000]))
    def send(self, lag: int) -> None:
        self.time_passes(lag)
        self.bench.send(self.next, self.now - lag, lag)
        self.sent_in[self.next] = (self.now - lag) // 60_000
        self.next += 1

    @precondition(lambda self: self.leg is Leg.LEADER)
    @rule()
    def fail_unsent(self) -> None:
        self.bench.tracker.open_minute(self.now // 60_000)
        self.bench.tracker.record_unsent_failure(self.next, self.now * MS, self.now * MS, self.now // 60_000)
        self.sent_in[self.next] = self.now // 60_000
        self.next += 1

    @rule(back=st.integers(1, 6), code=st.sampled_from([None, None, "MSG_TIMED_OUT", *OWN_CODES]))
    def report(self, back: int, code: str | None) -> None:
        failure = ProbeFailure(code, find_agent_fault(code)) if code else None
        self.bench.tracker.record_delivery(self.next - back, self.now * MS, failure)

    @rule(seconds=st.sampled_from([0.2, 3.0]))
    def throttle(self, seconds: float) -> None:
        self.bench.throttles.record(HOME, self.leg, self.now * MS, seconds)

    @rule(is_refused=st.booleans())
    def refuse_fetches(self, is_refused: bool) -> None:
        refusal = ProbeFailure("TOPIC_AUTHORIZATION_FAILED", AgentFault.RIGHTS)
        if is_refused:
            self.bench.tracker.record_fault(self.now * MS, refusal)
        else:
            self.bench.tracker.clear_fault(self.now * MS)

    @precondition(lambda self: self.leg is Leg.CLIENT)
    @rule(back=st.integers(1, 6))
    def receive(self, back: int) -> None:
        self.bench.receive(self.next - back, self.now)

    @rule(leader=st.sampled_from([HOME, HOME, OTHER, None]), eligibility=st.sampled_from(LeaderEligibility))
    def route(self, leader: int | None, eligibility: LeaderEligibility) -> None:
        self.bench.route(self.now, leader, LeaderEligibility.LEADING if leader == HOME else eligibility)

    @rule()
    def expire_and_close(self) -> None:
        self.bench.expire_overdue(self.now)
        current = self.now // 60_000
        for minute in self.bench.closable_minutes(current):
            assert minute not in self.closed
            self.closed.add(minute)
            interim = self.bench.tracker.tally_minute(minute)
            tally = self.bench.close_minute(minute)
            assert tally == interim
            assert_invariants(tally, self.leg)
            due = sum(m == minute for m in self.sent_in.values())
            counted = tally.attempted + tally.excluded
            assert counted == due if self.leg is Leg.CLIENT else counted <= due
        assert all(m >= current - 1 for m in self.bench.tracker.open_minutes())

    @invariant()
    def open_minutes_hold_the_invariants(self) -> None:
        for minute in self.bench.tracker.open_minutes():
            assert_invariants(self.bench.tracker.tally_minute(minute), self.leg)

    @invariant()
    def pulses_are_consistent(self) -> None:
        pulse = self.bench.tracker.build_pulse(self.now * MS)
        assert pulse.due <= pulse.succeeded + pulse.failed + pulse.outstanding
        assert (pulse.p50_us is None) == (pulse.p99_us is None) == (pulse.succeeded == 0)
        assert (pulse.oldest_outstanding_ms is None) == (pulse.outstanding == 0)
        if pulse.succeeded:
            assert pulse.success_age_ms is not None
            assert pulse.p50_us is not None
            assert pulse.p99_us is not None
            assert 0 <= pulse.p50_us <= pulse.p99_us


TrackerStateMachine.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
test_the_invariants_hold_under_any_order_of_events = TrackerStateMachine.TestCase
