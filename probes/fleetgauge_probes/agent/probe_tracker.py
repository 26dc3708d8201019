"""Outcomes of one broker's probes on one leg.

A probe is *outstanding* until it is *decided*: a success, a failure with a code, or withdrawn because it
turned out not to have been due. All times are uptimes in nanoseconds given by the caller; the tracker has no
clock, no lock and no I/O.

Probes that measure the agent instead of the broker do not count. A probe is excluded from tallies and
pulses, whatever its outcome, if a large part of its lifetime was schedule lag, a pause of the process or
throttling by a quota; if it failed by the agent's own fault; or if it succeeded late because such a fault had
just ended. Its lag stays in the tally, so that an agent that is late all the time is visible.

Acknowledgements on the leader leg need confirmation. librdkafka follows leadership by itself, so another
broker may have acknowledged the probe; it counts only if the home led from send to acknowledgement. Each
acknowledgement therefore waits for the first routing report of the producer that is not older than itself.
"""

from collections import deque
from collections.abc import Iterator

from fleetgauge_core.contract import Leg, LegPulse
from fleetgauge_core.contract.bounds import RECEIVE_DEADLINE_US
from fleetgauge_core.contract.failure_codes import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
    THROTTLED,
    AgentFault,
)
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.agent_faults import FaultPeriods, ProbeFailure
from fleetgauge_probes.agent.failure_code import MSG_TIMED_OUT
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.minute_tally import (
    ACK_DEADLINE_NS,
    WITHDRAWN,
    MinuteFacts,
    MinuteTally,
    TrackedProbe,
    measure_latency_us,
    tally_probes,
)
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.throttles import QuotaThrottles

RECEIVE_DEADLINE_NS = RECEIVE_DEADLINE_US * 1000
#: librdkafka reports time-outs up to a second late, and its routing is read every second.
REPORT_GRACE_NS = 3_000_000_000
#: A probe is excluded when lag or pauses take 1/5 of its lifetime or more. For a failed probe that is one
#: second: no shorter pause can make a healthy probe fail, and none may hide a broker's failure.
_MIN_OWN_SHARE = 5
#: An older probe waits for more than the broker's usual latency.
_WAITING_NS = 1_000_000_000
#: The period that a pulse covers.
WINDOW_NS = 15_000_000_000

#: What a probe ends with that only waited too long.
_LATE_FAILURES = frozenset({ACK_LATE, NOT_RECEIVED})
#: What a quota may have delayed. What a broker answers, and what was not sent, is no matter of time.
_DELAYED = frozenset({None, MSG_TIMED_OUT, *_LATE_FAILURES})
_NOT_RECEIVED = ProbeFailure(NOT_RECEIVED)
_QUOTA_EXCEEDED = ProbeFailure(THROTTLED, AgentFault.QUOTA)


class ProbeTracker:
    """Tracks the probes of one broker on one leg, identified by their sequence."""

    def __init__(self, leg: Leg, broker_id: int, pauses: ProcessPauses, throttles: QuotaThrottles) -> None:
        """Start without probes and without a known leader; ``broker_id`` is the home broker."""
        self._leg = leg
        self._broker_id = broker_id
        self._pauses = pauses
        self._throttles = throttles
        self._faults = FaultPeriods()
        self._probes: dict[int, TrackedProbe] = {}
        self._minutes: dict[int, MinuteFacts] = {}
        self._leader: int | None = None
        self._epoch: int | None = None
        self._leadership_term = 0
        self._undecided: dict[int, TrackedProbe] = {}
        self._unconfirmed: set[int] = set()
        self._highest_received = -1
        self._recent: deque[TrackedProbe] = deque()
        self._last_success_due_ns: int | None = None

    @property
    def leads(self) -> bool:
        """Whether the producer routes to the home broker."""
        return self._leader == self._broker_id

    @property
    def present_fault(self) -> ProbeFailure | None:
        """The failure by the agent's own fault for which this leg measures nothing now; None without one."""
        if self._faults.failure:
            return self._faults.failure
        decided = (probe for probe in reversed(self._recent) if probe.was_due)
        latest = next(decided, None)
        return _QUOTA_EXCEEDED if latest and self._find_exclusion(latest) == THROTTLED else None

    # Events -------------------------------------------------------------------

    def open_minute(self, minute: int) -> None:
        """Open a minute that has a slot, so that it gets a record even if no probe in it was due."""
        facts = self._minutes.setdefault(minute, MinuteFacts())
        if self._leader is not None:
            facts.led_by.add(self._leader)
            facts.leader_epoch = self._epoch

    def record_send(self, sequence: int, due_ns: int, sent_ns: int, minute: int) -> None:
        """Record that a due probe was sent in a minute that is open."""
        leader = self._broker_id if self._leader is None else self._leader
        probe = TrackedProbe(sequence, due_ns, minute, sent_ns - due_ns, self._leadership_term, leader)
        self._probes[sequence] = self._undecided[sequence] = probe
        self._recent.append(probe)

    def record_unsent_failure(self, sequence: int, due_ns: int, now_ns: int, minute: int) -> None:
        """Record a due probe that fails as NOT_LEADING without being sent, as the home is unhealthy."""
        self.record_send(sequence, due_ns, now_ns, minute)
        self._fail(self._probes[sequence], NOT_LEADING, now_ns)

    def record_delivery(self, sequence: int, at_ns: int, failure: ProbeFailure | None) -> None:
        """Record the producer's delivery report; ``failure`` is None for an acknowledgement."""
        probe = self._probes.get(sequence)
        if probe is None or probe.decided_ns is not None:
            return
        if failure is not None:
            self._fail(probe, failure.code, at_ns, failure.fault)
            return
        probe.acked_ns = at_ns
        if not probe.acked_in_time:
            self._fail(probe, ACK_LATE, at_ns)
        elif self._leg is Leg.LEADER:
            self._unconfirmed.add(sequence)
        elif probe.received_ns is not None:
            self._succeed(probe, at_ns)

    def record_receipt(self, sequence: int, at_ns: int) -> None:
        """Record that the consumer received a probe."""
        probe = self._probes.get(sequence)
        if probe is None:
            return
        facts = self._minutes[probe.minute]
        if probe.received_ns is not None:
            facts.duplicated += 1
            return
        if at_ns - probe.due_ns > RECEIVE_DEADLINE_NS and probe.decided_ns is None:
            self._expire(probe, at_ns)
        probe.received_ns = at_ns
        if sequence < self._highest_received:
            facts.out_of_order += 1
        self._highest_received = max(sequence, self._highest_received)
        if probe.decided_ns is None and probe.acked_in_time:
            self._succeed(probe, at_ns)

    def record_routing(
        self, at_ns: int, leader: int | None, eligibility: LeaderEligibility, epoch: int | None = None
    ) -> None:
        """Record the producer's routing at ``at_ns`` and decide the acknowledgements that waited for it."""
        if (leader, epoch) != (self._leader, self._epoch):
            self._leadership_term += 1
            self._leader, self._epoch = leader, epoch
        confirmed = [
            sequence for sequence in self._unconfirmed if (self._probes[sequence].acked_ns or 0) <= at_ns
        ]
        for sequence in confirmed:
            self._decide_acknowledged(self._probes[sequence], at_ns, eligibility)

    def record_fault(self, at_ns: int, failure: ProbeFailure) -> None:
        """Record that probes have been failing by the agent's own fault since ``at_ns``."""
        self._faults.begin(at_ns, failure)

    def clear_fault(self, at_ns: int) -> None:
        """Record that from ``at_ns`` on probes fail by the broker's fault, not by the agent's own."""
        self._faults.end(at_ns, at_ns)

    def has_overdue(self, now_ns: int) -> bool:
        """Return whether the deadline of a probe has passed that is not decided."""
        return any(now_ns - probe.due_ns > self._max_age_ns for probe in self._undecided.values())

    def expire_overdue(self, now_ns: int, not_received: ProbeFailure = _NOT_RECEIVED) -> None:
        """Decide the probes whose deadline has passed; drop those that left the pulse window, and old faults.

        ``not_received`` is the failure of acknowledged probes that were not received.
        """
        overdue = [probe for probe in self._undecided.values() if now_ns - probe.due_ns > self._max_age_ns]
        for probe in overdue:
            self._expire(probe, now_ns, not_received)
        while (
            self._recent
            and self._recent[0].decided_ns is not None
            and self._has_left_window(self._recent[0], now_ns)
        ):
            self._recent.popleft()
        self._faults.lapse(now_ns)

    # Results ------------------------------------------------------------------

    def closable_minutes(self, minute_end_index: int) -> Iterator[int]:
        """Return the minutes before ``minute_end_index`` whose probes are all decided, oldest first."""
        undecided = {probe.minute for probe in self._undecided.values()}
        return iter(
            sorted(
                minute for minute in self._minutes if minute < minute_end_index and minute not in undecided
            )
        )

    def open_minutes(self) -> Iterator[int]:
        """Return every minute that is not closed, oldest first."""
        return iter(sorted(self._minutes))

    def tally_minute(self, minute: int) -> MinuteTally:
        """Return the counts of an open minute so far; undecided probes are not counted."""
        decided = [probe for probe in self._probes.values() if probe.minute == minute and probe.was_due]
        exclusions = [(probe, self._find_exclusion(probe)) for probe in decided]
        counted = [probe for probe, exclusion in exclusions if exclusion is None]
        lag_us = tuple(sorted(max(0, probe.lag_ns // 1000) for probe in decided))
        tally = tally_probes(self._leg, counted, len(decided) - len(counted), lag_us, self._minutes[minute])
        for probe, code in exclusions:
            if code:
                is_lost = self._leg is Leg.CLIENT and probe.acked_in_time and probe.failure is not None
                failures = tally.consume_failures if is_lost else tally.produce_failures
                failures[code] = failures.get(code, 0) + 1
        return tally

    def close_minute(self, minute: int) -> MinuteTally:
        """Return a minute's final counts and drop its probes; undecided ones are not counted."""
        closed = self.tally_minute(minute)
        del self._minutes[minute]
        sequences = [sequence for sequence, probe in self._probes.items() if probe.minute == minute]
        for sequence in sequences:
            probe = self._probes.pop(sequence)
            if probe.decided_ns is None:
                self._fail(probe, WITHDRAWN, probe.due_ns)
        return closed

    def build_pulse(self, now_ns: int, login_fault: AgentFault | None = None) -> LegPulse:
        """Return counts and latency quantiles of the last WINDOW_NS.

        ``login_fault`` explains probes that are outstanding, as no broker lets the agent log in.
        """
        since = now_ns - WINDOW_NS
        probes = [probe for probe in self._recent if probe.failure != WITHDRAWN]
        recent = [
            (probe, self._find_exclusion(probe))
            for probe in probes
            if probe.decided_ns is not None and probe.decided_ns > since
        ]
        decided = [probe for probe, exclusion in recent if exclusion is None]
        outstanding = [probe for probe in probes if probe.decided_ns is None]
        latencies = sorted(self._success_latency_us(probe) for probe in decided if probe.failure is None)
        present_fault = self.present_fault
        oldest = min((probe.due_ns for probe in outstanding), default=None)
        return LegPulse(
            leg=self._leg,
            due=sum(probe.due_ns > since for probe in (*decided, *outstanding)),
            succeeded=len(latencies),
            failed=len(decided) - len(latencies),
            outstanding=len(outstanding),
            oldest_outstanding_ms=_age_ms(oldest, now_ns),
            success_age_ms=_age_ms(self._last_success_due_ns, now_ns),
            p50_us=quantile(50, latencies),
            p99_us=quantile(99, latencies),
            agent_fault=present_fault.fault
            if present_fault
            else (login_fault if oldest is not None and now_ns - oldest > _WAITING_NS else None),
        )

    # Decisions ----------------------------------------------------------------

    @property
    def _max_age_ns(self) -> int:
        deadline = RECEIVE_DEADLINE_NS if self._leg is Leg.CLIENT else ACK_DEADLINE_NS
        return deadline + REPORT_GRACE_NS

    def _decide_acknowledged(self, probe: TrackedProbe, at_ns: int, eligibility: LeaderEligibility) -> None:
        if eligibility is LeaderEligibility.LEADING and probe.leadership_term == self._leadership_term:
            self._succeed(probe, at_ns)
        elif eligibility is LeaderEligibility.UNHEALTHY:
            self._fail(probe, NOT_LEADING, at_ns)
        else:
            self._fail(probe, WITHDRAWN, at_ns)

    def _expire(self, probe: TrackedProbe, now_ns: int, not_received: ProbeFailure = _NOT_RECEIVED) -> None:
        if not probe.acked_in_time:
            self._fail(probe, NO_REPORT, now_ns)
        elif self._leg is Leg.CLIENT:
            self._fail(probe, not_received.code, now_ns, not_received.fault)
        else:
            # Acknowledged, but no routing was reported since: the last reported routing decides.
            eligibility = LeaderEligibility.LEADING if self.leads else LeaderEligibility.EXCUSED
            self._decide_acknowledged(probe, now_ns, eligibility)

    def _succeed(self, probe: TrackedProbe, at_ns: int) -> None:
        self._decide(probe, at_ns)
        self._last_success_due_ns = max(probe.due_ns, self._last_success_due_ns or probe.due_ns)
        self._faults.end(at_ns, probe.due_ns)

    def _fail(self, probe: TrackedProbe, code: str, at_ns: int, fault: AgentFault | None = None) -> None:
        self._decide(probe, at_ns)
        probe.failure, probe.fault = code, fault
        if fault:
            self._faults.begin(probe.due_ns, ProbeFailure(code, fault))
        elif code not in (WITHDRAWN, *_LATE_FAILURES):
            # The broker fails by itself, so nothing excuses what comes late from now on.
            self._faults.end(probe.due_ns, probe.due_ns)

    def _decide(self, probe: TrackedProbe, at_ns: int) -> None:
        probe.decided_ns = at_ns
        del self._undecided[probe.sequence]
        self._unconfirmed.discard(probe.sequence)

    def _find_exclusion(self, probe: TrackedProbe) -> str | None:
        """Return None if a decided probe measures the broker; else why not.

        That is the code of the agent's own fault, or an empty string if this process did not run.
        """
        if probe.fault:
            return probe.failure
        end_ns = self._end_ns(probe)
        lifetime_ns = end_ns - probe.due_ns
        lag_ns = probe.lag_ns if probe.lag_ns >= self._pauses.min_pause_ns else 0
        if _is_large(max(lag_ns, self._pauses.measure_paused_ns(probe.due_ns, end_ns)), lifetime_ns):
            return ""
        if probe.failure in _DELAYED and _is_large(self._measure_throttled_ns(probe, end_ns), lifetime_ns):
            return THROTTLED
        if probe.failure is None or probe.failure in _LATE_FAILURES:
            fault_ns, code = self._faults.measure(probe.due_ns, end_ns)
            if _is_large(fault_ns, lifetime_ns):
                return code if probe.failure else ""
        return None

    def _measure_throttled_ns(self, probe: TrackedProbe, end_ns: int) -> int:
        """Return for how long a quota held back a probe, or its consumption once it was acknowledged.

        A leader that was elected since it was sent explains nothing.
        """
        acked_ns = end_ns if probe.acked_ns is None else min(probe.acked_ns, end_ns)
        measure_ns = self._throttles.measure_throttled_ns
        produce_ns = measure_ns(probe.leader, self._leg, probe.due_ns, acked_ns)
        if self._leg is Leg.LEADER:
            return produce_ns
        return produce_ns + measure_ns(probe.leader, None, acked_ns, end_ns)

    def _end_ns(self, probe: TrackedProbe) -> int:
        """Return when a decided probe ended: a leader-leg success ends before it is confirmed."""
        if probe.failure is None and self._leg is Leg.LEADER:
            return probe.acked_ns or 0
        return probe.decided_ns or 0

    def _success_latency_us(self, probe: TrackedProbe) -> int:
        end_ns = probe.acked_ns if self._leg is Leg.LEADER else probe.received_ns
        return measure_latency_us(probe, end_ns)

    def _has_left_window(self, probe: TrackedProbe, now_ns: int) -> bool:
        return probe.due_ns <= now_ns - WINDOW_NS and (probe.decided_ns or 0) <= now_ns - WINDOW_NS


def _is_large(own_ns: int, lifetime_ns: int) -> bool:
    """Return whether so much of a probe's lifetime makes it a measurement of the agent."""
    return own_ns > 0 and own_ns * _MIN_OWN_SHARE >= lifetime_ns


def _age_ms(at_ns: int | None, now_ns: int) -> int | None:
    return None if at_ns is None else max(0, (now_ns - at_ns) // 1_000_000)
