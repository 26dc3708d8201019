"""Outcomes of one broker's probes on one leg.

A probe is *outstanding* until it is *decided*: a success, a failure with a code, or withdrawn because it
turned out not to have been due. All times are uptimes in nanoseconds given by the caller; the tracker has no
clock, no lock and no I/O.

Probes that measure this process instead of the broker do not count: a probe is excluded from tallies and
pulses, whatever its outcome, if a large part of its lifetime was schedule lag or a pause of the process. Its
lag stays in the tally, so that an agent that is late all the time is visible.

Acknowledgements on the leader leg need confirmation. librdkafka follows leadership by itself, so another
broker may have acknowledged the probe; it counts only if the home led from send to acknowledgement. Each
acknowledgement therefore waits for the first routing report of the producer that is not older than itself.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetgauge_core.contract import Leg, LegPulse
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.process_pauses import ProcessPauses

ACK_DEADLINE_NS = 5_000_000_000
RECEIVE_DEADLINE_NS = 10_000_000_000
#: librdkafka reports time-outs up to a second late, and its routing is read every second.
REPORT_GRACE_NS = 3_000_000_000
#: A probe is excluded when lag or pauses take 1/5 of its lifetime or more. For a failed probe that is one
#: second: no shorter pause can make a healthy probe fail, and none may hide a broker's failure.
_MIN_OWN_SHARE = 5
#: Failures of this process: librdkafka's local queue did not accept the probe.
_OWN_FAILURES = frozenset({"QUEUE_FULL"})
#: The period that a pulse covers.
WINDOW_NS = 15_000_000_000

NOT_LEADING = "NOT_LEADING"
ACK_LATE = "ACK_LATE"
NO_REPORT = "NO_REPORT"
NOT_RECEIVED = "NOT_RECEIVED"
#: Decided as not due; only used inside the tracker.
_WITHDRAWN = "WITHDRAWN"


@dataclass(slots=True)
class _Probe:
    sequence: int
    due_ns: int
    minute: int
    lag_ns: int
    leadership_term: int
    """The number of leadership changes that had been observed when the probe was sent."""
    acked_ns: int | None = None
    received_ns: int | None = None
    decided_ns: int | None = None
    failure: str | None = None

    @property
    def was_due(self) -> bool:
        """Whether the probe is decided and was not withdrawn."""
        return self.decided_ns is not None and self.failure != _WITHDRAWN

    @property
    def acked_in_time(self) -> bool:
        return self.acked_ns is not None and self.acked_ns - self.due_ns <= ACK_DEADLINE_NS


@dataclass(frozen=True, slots=True)
class MinuteTally:
    """Counts of one minute's decided probes; latencies and lags are ascending and in microseconds.

    ``attempted`` and the counts that add up to it do not include the ``excluded`` probes; ``lag_us`` does.
    """

    attempted: int
    excluded: int
    acknowledged: int
    received: int
    ack_us: tuple[int, ...]
    e2e_us: tuple[int, ...]
    produce_failures: dict[str, int]
    consume_failures: dict[str, int]
    lost: int
    duplicated: int
    out_of_order: int
    lag_us: tuple[int, ...]
    led_by: tuple[int, ...]
    leader_epoch: int | None


@dataclass(slots=True)
class _MinuteFacts:
    """Facts about a minute that its probes do not hold."""

    duplicated: int = 0
    out_of_order: int = 0
    led_by: set[int] = field(default_factory=set)
    leader_epoch: int | None = None


class ProbeTracker:
    """Tracks the probes of one broker on one leg, identified by their sequence."""

    def __init__(self, leg: Leg, broker_id: int, pauses: ProcessPauses) -> None:
        """Start without probes and without a known leader; ``broker_id`` is the home broker."""
        self._leg = leg
        self._broker_id = broker_id
        self._pauses = pauses
        self._probes: dict[int, _Probe] = {}
        self._minutes: dict[int, _MinuteFacts] = {}
        self._leader: int | None = None
        self._epoch: int | None = None
        self._leadership_term = 0
        self._undecided: dict[int, _Probe] = {}
        self._unconfirmed: set[int] = set()
        self._highest_received = -1
        self._recent: deque[_Probe] = deque()
        self._last_success_due_ns: int | None = None

    @property
    def leads(self) -> bool:
        """Whether the producer routes to the home broker."""
        return self._leader == self._broker_id

    # Events -------------------------------------------------------------------

    def open_minute(self, minute: int) -> None:
        """Open a minute that has a slot, so that it gets a record even if no probe in it was due."""
        facts = self._minutes.setdefault(minute, _MinuteFacts())
        if self._leader is not None:
            facts.led_by.add(self._leader)
            facts.leader_epoch = self._epoch

    def record_send(self, sequence: int, due_ns: int, sent_ns: int, minute: int) -> None:
        """Record that a due probe was sent in a minute that is open."""
        probe = _Probe(sequence, due_ns, minute, sent_ns - due_ns, self._leadership_term)
        self._probes[sequence] = self._undecided[sequence] = probe
        self._recent.append(probe)

    def record_unsent_failure(self, sequence: int, due_ns: int, now_ns: int, minute: int) -> None:
        """Record a due probe that fails as NOT_LEADING without being sent, as the home is unhealthy."""
        self.record_send(sequence, due_ns, now_ns, minute)
        self._fail(self._probes[sequence], NOT_LEADING, now_ns)

    def record_delivery(self, sequence: int, at_ns: int, failure: str | None) -> None:
        """Record the producer's delivery report; ``failure`` is None for an acknowledgement."""
        probe = self._probes.get(sequence)
        if probe is None or probe.decided_ns is not None:
            return
        if failure is not None:
            self._fail(probe, failure, at_ns)
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

    def expire_overdue(self, now_ns: int) -> None:
        """Decide the probes whose deadline has passed; drop those that left the pulse window."""
        overdue = [probe for probe in self._undecided.values() if now_ns - probe.due_ns > self._max_age_ns]
        for probe in overdue:
            self._expire(probe, now_ns)
        while (
            self._recent
            and self._recent[0].decided_ns is not None
            and self._has_left_window(self._recent[0], now_ns)
        ):
            self._recent.popleft()

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
        counted = [probe for probe in decided if self._measures_broker(probe)]
        lag_us = tuple(sorted(max(0, probe.lag_ns // 1000) for probe in decided))
        return _tally(self._leg, counted, len(decided) - len(counted), lag_us, self._minutes[minute])

    def close_minute(self, minute: int) -> MinuteTally:
        """Return a minute's final counts and drop its probes; undecided ones are not counted."""
        closed = self.tally_minute(minute)
        del self._minutes[minute]
        sequences = [sequence for sequence, probe in self._probes.items() if probe.minute == minute]
        for sequence in sequences:
            probe = self._probes.pop(sequence)
            if probe.decided_ns is None:
                self._fail(probe, _WITHDRAWN, probe.due_ns)
        return closed

    def build_pulse(self, now_ns: int) -> LegPulse:
        """Return counts and latency quantiles of the last WINDOW_NS."""
        since = now_ns - WINDOW_NS
        probes = [probe for probe in self._recent if probe.failure != _WITHDRAWN]
        decided = [
            probe
            for probe in probes
            if probe.decided_ns is not None and probe.decided_ns > since and self._measures_broker(probe)
        ]
        outstanding = [probe for probe in probes if probe.decided_ns is None]
        latencies = sorted(self._success_latency_us(probe) for probe in decided if probe.failure is None)
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
        )

    # Decisions ----------------------------------------------------------------

    @property
    def _max_age_ns(self) -> int:
        deadline = RECEIVE_DEADLINE_NS if self._leg is Leg.CLIENT else ACK_DEADLINE_NS
        return deadline + REPORT_GRACE_NS

    def _decide_acknowledged(self, probe: _Probe, at_ns: int, eligibility: LeaderEligibility) -> None:
        if eligibility is LeaderEligibility.LEADING and probe.leadership_term == self._leadership_term:
            self._succeed(probe, at_ns)
        elif eligibility is LeaderEligibility.UNHEALTHY:
            self._fail(probe, NOT_LEADING, at_ns)
        else:
            self._fail(probe, _WITHDRAWN, at_ns)

    def _expire(self, probe: _Probe, now_ns: int) -> None:
        if not probe.acked_in_time:
            self._fail(probe, NO_REPORT, now_ns)
        elif self._leg is Leg.CLIENT:
            self._fail(probe, NOT_RECEIVED, now_ns)
        else:
            # Acknowledged, but no routing was reported since: the last reported routing decides.
            eligibility = LeaderEligibility.LEADING if self.leads else LeaderEligibility.EXCUSED
            self._decide_acknowledged(probe, now_ns, eligibility)

    def _succeed(self, probe: _Probe, at_ns: int) -> None:
        self._decide(probe, at_ns)
        self._last_success_due_ns = max(probe.due_ns, self._last_success_due_ns or probe.due_ns)

    def _fail(self, probe: _Probe, code: str, at_ns: int) -> None:
        self._decide(probe, at_ns)
        probe.failure = code

    def _decide(self, probe: _Probe, at_ns: int) -> None:
        probe.decided_ns = at_ns
        del self._undecided[probe.sequence]
        self._unconfirmed.discard(probe.sequence)

    def _measures_broker(self, probe: _Probe) -> bool:
        """Return whether a decided probe measures the broker rather than this process."""
        if probe.failure in _OWN_FAILURES:
            return False
        end_ns = self._end_ns(probe)
        lag_ns = probe.lag_ns if probe.lag_ns >= self._pauses.min_pause_ns else 0
        own_ns = max(lag_ns, self._pauses.measure_paused_ns(probe.due_ns, end_ns))
        return own_ns == 0 or own_ns * _MIN_OWN_SHARE < end_ns - probe.due_ns

    def _end_ns(self, probe: _Probe) -> int:
        """Return when a decided probe ended: a leader-leg success ends before it is confirmed."""
        if probe.failure is None and self._leg is Leg.LEADER:
            return probe.acked_ns or 0
        return probe.decided_ns or 0

    def _success_latency_us(self, probe: _Probe) -> int:
        end_ns = probe.acked_ns if self._leg is Leg.LEADER else probe.received_ns
        return _latency_us(probe, end_ns)

    def _has_left_window(self, probe: _Probe, now_ns: int) -> bool:
        return probe.due_ns <= now_ns - WINDOW_NS and (probe.decided_ns or 0) <= now_ns - WINDOW_NS


def _latency_us(probe: _Probe, end_ns: int | None) -> int:
    return max(0, ((end_ns or 0) - probe.due_ns) // 1000)


def _tally(
    leg: Leg, probes: list[_Probe], excluded: int, lag_us: tuple[int, ...], facts: _MinuteFacts
) -> MinuteTally:
    """Count probes; a client probe may be acknowledged and still fail, a leader probe may not."""
    successes = [probe for probe in probes if probe.failure is None]
    acknowledged = [probe for probe in probes if probe.acked_in_time] if leg is Leg.CLIENT else successes
    not_received = [probe for probe in probes if probe.failure == NOT_RECEIVED]
    return MinuteTally(
        attempted=len(probes),
        excluded=excluded,
        acknowledged=len(acknowledged),
        received=sum(probe.received_ns is not None for probe in probes) if leg is Leg.CLIENT else 0,
        ack_us=tuple(sorted(_latency_us(probe, probe.acked_ns) for probe in acknowledged)),
        e2e_us=tuple(sorted(_latency_us(probe, probe.received_ns) for probe in successes))
        if leg is Leg.CLIENT
        else (),
        produce_failures=dict(
            Counter(probe.failure for probe in probes if probe.failure and probe.failure != NOT_RECEIVED)
        ),
        consume_failures={NOT_RECEIVED: len(not_received)} if not_received else {},
        lost=len(not_received),
        duplicated=facts.duplicated,
        out_of_order=facts.out_of_order,
        lag_us=lag_us,
        led_by=tuple(sorted(facts.led_by)),
        leader_epoch=facts.leader_epoch,
    )


def _age_ms(at_ns: int | None, now_ns: int) -> int | None:
    return None if at_ns is None else max(0, (now_ns - at_ns) // 1_000_000)
