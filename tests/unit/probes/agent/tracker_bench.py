"""A probe tracker driven in milliseconds, and the invariants of every tally."""

from collections import Counter

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import NOT_RECEIVED, AgentFault, find_agent_fault
from fleetgauge_probes.agent.agent_faults import ProbeFailure
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.minute_tally import MinuteTally
from fleetgauge_probes.agent.probe_tracker import ProbeTracker
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.throttles import QuotaThrottles

HOME, OTHER = 7, 8
MS = 1_000_000
#: Schedule lag in ms from which a probe counts as sent late.
LATE_MS = 100


class FixedPauses(ProcessPauses):
    """Pauses that a test sets explicitly."""

    def __init__(self) -> None:
        super().__init__(LATE_MS * MS, 0)
        self.intervals: list[tuple[int, int]] = []

    def measure_paused_ns(self, start_ns: int, end_ns: int) -> int:
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in self.intervals)


class TrackerBench:
    """A tracker of broker HOME's leg; all times are in milliseconds."""

    def __init__(self, leg: Leg, leader: int | None = HOME) -> None:
        self.pauses = FixedPauses()
        self.throttles = QuotaThrottles()
        self.tracker = ProbeTracker(leg, HOME, self.pauses, self.throttles)
        self.tracker.open_minute(0)
        if leader is not None:
            self.route(0, leader)

    def send(self, sequence: int, due: int = 0, lag: int = 0) -> None:
        self.tracker.open_minute(due // 60_000)
        self.tracker.record_send(sequence, due * MS, (due + lag) * MS, due // 60_000)

    def pause(self, since: int, until: int) -> None:
        self.pauses.intervals.append((since * MS, until * MS))

    def acknowledge(self, sequence: int, at: int) -> None:
        self.tracker.record_delivery(sequence, at * MS, None)

    def fail(
        self, sequence: int, at: int, code: str = "MSG_TIMED_OUT", fault: AgentFault | None = None
    ) -> None:
        self.tracker.record_delivery(sequence, at * MS, ProbeFailure(code, fault))

    def receive(self, sequence: int, at: int) -> None:
        self.tracker.record_receipt(sequence, at * MS)

    def route(self, at: int, leader: int | None, eligibility: LeaderEligibility | None = None) -> None:
        by_leader = LeaderEligibility.LEADING if leader == HOME else LeaderEligibility.EXCUSED
        self.tracker.record_routing(at * MS, leader, eligibility or by_leader)

    def expire_overdue(self, at: int) -> None:
        self.tracker.expire_overdue(at * MS)

    def closable_minutes(self, before: int = 1) -> list[int]:
        return list(self.tracker.closable_minutes(before))

    def close_minute(self, minute: int = 0) -> MinuteTally:
        return self.tracker.close_minute(minute)


def assert_invariants(tally: MinuteTally, leg: Leg) -> None:
    """Assert what every reader of a record relies on."""
    successes = tally.e2e_us if leg is Leg.CLIENT else tally.ack_us
    failures = Counter(tally.produce_failures) + Counter(tally.consume_failures)
    counted = sum(number for code, number in failures.items() if find_agent_fault(code) is None)
    assert tally.attempted == len(successes) + counted
    assert tally.attempted + tally.excluded == len(tally.lag_us)
    assert len(tally.ack_us) == tally.acknowledged <= tally.attempted
    assert len(tally.e2e_us) <= min(tally.acknowledged, tally.received)
    assert tally.received <= tally.attempted
    assert list(tally.ack_us) == sorted(tally.ack_us)
    assert list(tally.e2e_us) == sorted(tally.e2e_us)
    assert all(0 <= us <= 5_000_000 for us in tally.ack_us)
    assert all(0 <= us <= 10_000_000 for us in tally.e2e_us)
    assert tally.lost == tally.consume_failures.get(NOT_RECEIVED, 0)
    assert "WITHDRAWN" not in tally.produce_failures
    if leg is Leg.LEADER:
        assert tally.e2e_us == ()
        assert tally.received == tally.lost == tally.duplicated == tally.out_of_order == 0
        assert not tally.consume_failures
