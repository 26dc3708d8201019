"""What became of one broker's probes on one leg.

A probe is *outstanding* until it is *decided*: a success, a failure with a
code, or withdrawn (it turned out not to have been due). All times are
uptimes in nanoseconds given by the caller; the ledger has no clock, no lock
and no I/O.

What tells of this process instead of the broker does not count: a probe whose
life was in good part its own lag or a stall is left out of tallies and pulses,
whatever became of it. Its lag stays in the tally, so that an agent that is late
all the time is seen to be.

The leader leg's acknowledgements need a second look. librdkafka follows
leadership by itself, so an acknowledgement may be another broker's merit; it
counts only if the home led from send to acknowledgement. Each acknowledgement
therefore waits for the first look at the producer's routing that is no older
than itself.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetgauge_core.contract import Leg, LegPulse
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.leader_eligibility import Standing
from fleetgauge_probes.agent.process_pauses import Stalls

ACK_DEADLINE_NS = 5_000_000_000
RECEIVE_DEADLINE_NS = 10_000_000_000
#: librdkafka reports time-outs up to a second late, and routing is seen every second.
REPORT_GRACE_NS = 3_000_000_000
#: A probe is left out when this part of its life or more was our own doing. Of a failure that is a second:
#: no shorter stall can make one out of a probe that was well, and none may hide a broker's.
_OWN_PART = 5
#: librdkafka would not even take the probe.
_OWN_FAULTS = frozenset({"QUEUE_FULL"})
#: What a pulse looks back on.
WINDOW_NS = 15_000_000_000

NOT_LEADING = "NOT_LEADING"
ACK_LATE = "ACK_LATE"
NO_REPORT = "NO_REPORT"
NOT_RECEIVED = "NOT_RECEIVED"


@dataclass(slots=True)
class _Probe:
    sequence: int
    due_ns: int
    minute: int
    lag_ns: int
    reign: int
    """How often leadership had been seen to change when it was sent."""
    acked_ns: int | None = None
    received_ns: int | None = None
    decided_ns: int | None = None
    failure: str | None = None

    @property
    def was_due(self) -> bool:
        """Whether it is decided, and was due."""
        return self.decided_ns is not None and self.failure != _WITHDRAWN

    @property
    def acked_in_time(self) -> bool:
        return self.acked_ns is not None and self.acked_ns - self.due_ns <= ACK_DEADLINE_NS


@dataclass(frozen=True, slots=True)
class MinuteTally:
    """One minute of decided probes; latencies and lags ascending, in microseconds.

    ``attempted`` and all that adds up to it are without the ``left_out``, ``lag_us`` is with them.
    """

    attempted: int
    left_out: int
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
class _Minute:
    """What of a minute is not told by its probes."""

    duplicated: int = 0
    out_of_order: int = 0
    led_by: set[int] = field(default_factory=set)
    leader_epoch: int | None = None


class LegLedger:
    """One broker, one leg. Probes are known by their sequence."""

    def __init__(self, leg: Leg, broker_id: int, stalls: Stalls) -> None:
        self._leg = leg
        self._broker_id = broker_id
        self._stalls = stalls
        self._probes: dict[int, _Probe] = {}
        self._minutes: dict[int, _Minute] = {}
        self._leader: int | None = None
        self._epoch: int | None = None
        self._reign = 0
        self._undecided: dict[int, _Probe] = {}
        self._unconfirmed: set[int] = set()
        self._highest_received = -1
        self._recent: deque[_Probe] = deque()
        self._last_success_due_ns: int | None = None

    @property
    def leads(self) -> bool:
        """Whether the producer routes to the home."""
        return self._leader == self._broker_id

    # What happens ------------------------------------------------------------

    def open_minute(self, minute: int) -> None:
        """A slot of the minute has come; it gets a record even if no probe is due in it."""
        opened = self._minutes.setdefault(minute, _Minute())
        if self._leader is not None:
            opened.led_by.add(self._leader)
            opened.leader_epoch = self._epoch

    def sent(self, sequence: int, due_ns: int, sent_ns: int, minute: int) -> None:
        """A due probe is on its way."""
        probe = _Probe(sequence, due_ns, minute, sent_ns - due_ns, self._reign)
        self._probes[sequence] = self._undecided[sequence] = probe
        self._recent.append(probe)

    def failed_unsent(self, sequence: int, due_ns: int, now_ns: int, minute: int) -> None:
        """A due probe that cannot succeed: the home is out."""
        self.sent(sequence, due_ns, now_ns, minute)
        self._fail(self._probes[sequence], NOT_LEADING, now_ns)

    def delivered(self, sequence: int, at_ns: int, failure: str | None) -> None:
        """The producer's report on one probe."""
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

    def received(self, sequence: int, at_ns: int) -> None:
        """The consumer saw one probe."""
        probe = self._probes.get(sequence)
        if probe is None:
            return
        minute = self._minutes[probe.minute]
        if probe.received_ns is not None:
            minute.duplicated += 1
            return
        if at_ns - probe.due_ns > RECEIVE_DEADLINE_NS and probe.decided_ns is None:
            self._expire(probe, at_ns)
        probe.received_ns = at_ns
        if sequence < self._highest_received:
            minute.out_of_order += 1
        self._highest_received = max(sequence, self._highest_received)
        if probe.decided_ns is None and probe.acked_in_time:
            self._succeed(probe, at_ns)

    def routed(self, at_ns: int, leader: int | None, standing: Standing, epoch: int | None = None) -> None:
        """A look at the producer's routing; settles the acknowledgements that waited for it."""
        if (leader, epoch) != (self._leader, self._epoch):
            self._reign += 1
            self._leader, self._epoch = leader, epoch
        settled = [s for s in self._unconfirmed if (self._probes[s].acked_ns or 0) <= at_ns]
        for sequence in settled:
            self._settle(self._probes[sequence], at_ns, standing)

    def tick(self, now_ns: int) -> None:
        """Decide what has run out of time, forget what no pulse needs."""
        overdue = [p for p in self._undecided.values() if now_ns - p.due_ns > self._patience_ns]
        for probe in overdue:
            self._expire(probe, now_ns)
        while (
            self._recent
            and self._recent[0].decided_ns is not None
            and self._left_window(self._recent[0], now_ns)
        ):
            self._recent.popleft()

    # What is said of it ------------------------------------------------------

    def closable(self, minute_end_index: int) -> Iterator[int]:
        """Minutes before that index of which every probe is decided, oldest first."""
        undecided = {probe.minute for probe in self._undecided.values()}
        return iter(sorted(m for m in self._minutes if m < minute_end_index and m not in undecided))

    def open_minutes(self) -> Iterator[int]:
        """Every minute not yet taken, oldest first."""
        return iter(sorted(self._minutes))

    def tally(self, minute: int) -> MinuteTally:
        """A minute as it stands: what is undecided is not counted."""
        decided = [p for p in self._probes.values() if p.minute == minute and p.was_due]
        counted = [p for p in decided if self._tells_of_the_broker(p)]
        lag_us = tuple(sorted(max(0, p.lag_ns // 1000) for p in decided))
        return _tally(self._leg, counted, len(decided) - len(counted), lag_us, self._minutes[minute])

    def take(self, minute: int) -> MinuteTally:
        """Close a minute: its decided probes leave the ledger, undecided ones with them, uncounted."""
        closed = self.tally(minute)
        del self._minutes[minute]
        sequences = [s for s, probe in self._probes.items() if probe.minute == minute]
        for sequence in sequences:
            probe = self._probes.pop(sequence)
            if probe.decided_ns is None:
                self._fail(probe, _WITHDRAWN, probe.due_ns)
        return closed

    def pulse(self, now_ns: int) -> LegPulse:
        """The last WINDOW_NS."""
        since = now_ns - WINDOW_NS
        probes = [p for p in self._recent if p.failure != _WITHDRAWN]
        decided = [
            p
            for p in probes
            if p.decided_ns is not None and p.decided_ns > since and self._tells_of_the_broker(p)
        ]
        outstanding = [p for p in probes if p.decided_ns is None]
        latencies = sorted(self._latency_us(p) for p in decided if p.failure is None)
        oldest = min((p.due_ns for p in outstanding), default=None)
        return LegPulse(
            leg=self._leg,
            due=sum(p.due_ns > since for p in (*decided, *outstanding)),
            succeeded=len(latencies),
            failed=len(decided) - len(latencies),
            outstanding=len(outstanding),
            oldest_outstanding_ms=_age_ms(oldest, now_ns),
            success_age_ms=_age_ms(self._last_success_due_ns, now_ns),
            p50_us=quantile(50, latencies),
            p99_us=quantile(99, latencies),
        )

    # Decisions ---------------------------------------------------------------

    @property
    def _patience_ns(self) -> int:
        deadline = RECEIVE_DEADLINE_NS if self._leg is Leg.CLIENT else ACK_DEADLINE_NS
        return deadline + REPORT_GRACE_NS

    def _settle(self, probe: _Probe, at_ns: int, standing: Standing) -> None:
        if standing is Standing.LEADS and probe.reign == self._reign:
            self._succeed(probe, at_ns)
        elif standing is Standing.OUT:
            self._fail(probe, NOT_LEADING, at_ns)
        else:
            self._fail(probe, _WITHDRAWN, at_ns)

    def _expire(self, probe: _Probe, now_ns: int) -> None:
        if not probe.acked_in_time:
            self._fail(probe, NO_REPORT, now_ns)
        elif self._leg is Leg.CLIENT:
            self._fail(probe, NOT_RECEIVED, now_ns)
        else:
            # Acknowledged, and routing was not seen since: the last look stands.
            self._settle(probe, now_ns, Standing.LEADS if self.leads else Standing.AWAY)

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

    def _tells_of_the_broker(self, probe: _Probe) -> bool:
        if probe.failure in _OWN_FAULTS:
            return False
        end_ns = self._end_ns(probe)
        lag_ns = probe.lag_ns if probe.lag_ns >= self._stalls.least_ns else 0
        own_ns = max(lag_ns, self._stalls.within_ns(probe.due_ns, end_ns))
        return own_ns == 0 or own_ns * _OWN_PART < end_ns - probe.due_ns

    def _end_ns(self, probe: _Probe) -> int:
        """Of a decided probe's life; that it was a leader's success is only decided later."""
        if probe.failure is None and self._leg is Leg.LEADER:
            return probe.acked_ns or 0
        return probe.decided_ns or 0

    def _latency_us(self, probe: _Probe) -> int:
        end_ns = probe.acked_ns if self._leg is Leg.LEADER else probe.received_ns
        return _latency_us(probe, end_ns)

    def _left_window(self, probe: _Probe, now_ns: int) -> bool:
        return probe.due_ns <= now_ns - WINDOW_NS and (probe.decided_ns or 0) <= now_ns - WINDOW_NS


_WITHDRAWN = "WITHDRAWN"
"""Decided as not due; never leaves the ledger."""


def _latency_us(probe: _Probe, end_ns: int | None) -> int:
    return max(0, ((end_ns or 0) - probe.due_ns) // 1000)


def _tally(
    leg: Leg, probes: list[_Probe], left_out: int, lag_us: tuple[int, ...], facts: _Minute
) -> MinuteTally:
    """A client probe may be acknowledged and still fail; a leader's acknowledgement is its success."""
    successes = [p for p in probes if p.failure is None]
    acknowledged = [p for p in probes if p.acked_in_time] if leg is Leg.CLIENT else successes
    not_received = [p for p in probes if p.failure == NOT_RECEIVED]
    return MinuteTally(
        attempted=len(probes),
        left_out=left_out,
        acknowledged=len(acknowledged),
        received=sum(p.received_ns is not None for p in probes) if leg is Leg.CLIENT else 0,
        ack_us=tuple(sorted(_latency_us(p, p.acked_ns) for p in acknowledged)),
        e2e_us=tuple(sorted(_latency_us(p, p.received_ns) for p in successes)) if leg is Leg.CLIENT else (),
        produce_failures=dict(Counter(p.failure for p in probes if p.failure and p.failure != NOT_RECEIVED)),
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
