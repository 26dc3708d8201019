"""The probes of one leg, and the counts of a minute's decided probes."""

from collections import Counter
from dataclasses import dataclass, field

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.bounds import ACK_DEADLINE_US
from fleetgauge_core.contract.failure_codes import NOT_RECEIVED, AgentFault

ACK_DEADLINE_NS = ACK_DEADLINE_US * 1000
#: Decided as not due; only used inside the tracker.
WITHDRAWN = "WITHDRAWN"


@dataclass(slots=True)
class TrackedProbe:
    """A probe that was due, and what is known of it; it is decided once ``decided_ns`` is set."""

    sequence: int
    due_ns: int
    minute: int
    lag_ns: int
    leadership_term: int
    """The number of leadership changes that had been observed when the probe was sent."""
    leader: int
    """The broker to which the producer routed when the probe was sent."""
    acked_ns: int | None = None
    received_ns: int | None = None
    decided_ns: int | None = None
    failure: str | None = None
    fault: AgentFault | None = None

    @property
    def was_due(self) -> bool:
        """Whether the probe is decided and was not withdrawn."""
        return self.decided_ns is not None and self.failure != WITHDRAWN

    @property
    def acked_in_time(self) -> bool:
        """Whether it was acknowledged within its deadline."""
        return self.acked_ns is not None and self.acked_ns - self.due_ns <= ACK_DEADLINE_NS


@dataclass(frozen=True, slots=True)
class MinuteTally:
    """Counts of one minute's decided probes; latencies and lags are ascending and in microseconds.

    ``attempted`` and the counts that add up to it do not include the ``excluded`` probes; ``lag_us`` does.
    The failures also count the excluded probes of which the agent's own fault is known, so that a reader can
    say why a minute was not measured.
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
class MinuteFacts:
    """Facts about a minute that its probes do not hold."""

    duplicated: int = 0
    out_of_order: int = 0
    led_by: set[int] = field(default_factory=set)
    leader_epoch: int | None = None


def measure_latency_us(probe: TrackedProbe, end_ns: int | None) -> int:
    """Return the time from the scheduled send to ``end_ns``."""
    return max(0, ((end_ns or 0) - probe.due_ns) // 1000)


def tally_probes(
    leg: Leg, probes: list[TrackedProbe], excluded: int, lag_us: tuple[int, ...], facts: MinuteFacts
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
        ack_us=tuple(sorted(measure_latency_us(probe, probe.acked_ns) for probe in acknowledged)),
        e2e_us=tuple(sorted(measure_latency_us(probe, probe.received_ns) for probe in successes))
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
