"""Health events of simulated incidents: pulses around a faulty broker, folded with the watch's own code."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zlib import crc32

from fleetgauge_core.contract import (
    BrokerPulse,
    HealthEvent,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import FleetHealth, fold_pulse
from fleetgauge_pipelines.simulation.fleet import SimulatedFleet
from fleetgauge_pipelines.simulation.incidents import IncidentKind, SimulatedIncident

_WINDOW_MS = 15_000
#: Age of the last ApiVersions answer and of the last successful probe when the broker stops.
_ANSWER_AGE_MS, _SUCCESS_AGE_MS = 600, 100
_PROBE_EVERY_MS = 600
_DEADLINE_MS = 5_000
_PULSE_EVERY_MS = 5_000
#: From the hang until the broker is fenced, as measured with a session timeout of 6 s.
_FENCED_AFTER_MS = 9_400
_WINDOW, _PULSE_EVERY = timedelta(milliseconds=_WINDOW_MS), timedelta(milliseconds=_PULSE_EVERY_MS)
#: The usual median of the leader leg.
_USUAL_US = 3_000
#: A broker is compared with how it was before, reported after a minute, and cleared after one of calm.
_OBSERVED_BEFORE, _REPORTED_WITHIN, _CLEARED_WITHIN = (
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=3),
)
#: From the end of the hang until the broker leads again and a probe has succeeded.
_RECOVERED_AFTER_MS = 1_000


def list_health_events(simulated: SimulatedFleet, cluster: int) -> list[HealthEvent]:
    """Return the health events of all incidents of a cluster."""
    return [event for incident in simulated.incidents(cluster) for event in make_health_events(incident)]


def make_health_events(incident: SimulatedIncident) -> tuple[HealthEvent, ...]:
    """Return the health events of an incident: a hung or slow broker is reported and cleared.

    An incident in which no broker is faulty on its own has none.
    """
    pulses: Iterator[ProbePulse] = iter(())
    if incident.kind is IncidentKind.BROKER_HUNG:
        pulses = _pulses_of_hang(incident)
    elif incident.kind is IncidentKind.BROKER_SLOW:
        pulses = _pulses_of_slowness(incident)
    state, events = FleetHealth(), []
    for pulse in pulses:
        state, findings = fold_pulse(state, pulse)
        events += [finding.event for finding in findings]
    # Left out pulses look like a vantage that sends none.
    return tuple(event for event in events if event.broker_id is not None)


def _pulses_of_slowness(incident: SimulatedIncident) -> Iterator[ProbePulse]:
    """Yield pulses of a slow broker and two others until it is reported, and from its end until it clears.

    Those in between would change nothing about the broker, so they are left out.
    """
    slow, reported = incident.brokers[0], incident.start + _REPORTED_WITHIN
    spans = (
        (incident.start - _OBSERVED_BEFORE, min(reported, incident.end)),
        (incident.end, incident.end + _CLEARED_WITHIN),
    )
    times = (
        first + number * _PULSE_EVERY
        for first, last in spans
        for number in range((last - first) // _PULSE_EVERY)
    )
    for sequence, at in enumerate(times):
        is_slow = incident.start < at and at - _WINDOW < incident.end
        brokers = (
            _answering_broker(number, _USUAL_US + (incident.extra_us if is_slow and number == slow else 0))
            for number in (slow, slow + 1, slow + 2)
        )
        yield _pulse(incident, at, sequence, *brokers)


def _answering_broker(broker: int, p50_us: int) -> BrokerPulse:
    due = _WINDOW_MS // _PROBE_EVERY_MS
    leader = LegPulse(Leg.LEADER, due, due, 0, 0, None, _SUCCESS_AGE_MS, p50_us, 2 * p50_us)
    return _broker(broker, _ANSWER_AGE_MS, leader, in_sync=True)


def _pulses_of_hang(incident: SimulatedIncident) -> Iterator[ProbePulse]:
    """Yield the last pulse before the hang, those during it, and one after it.

    The hang begins at a random time between two pulses.
    """
    broker, phase_ms = incident.brokers[0], crc32(incident.id.encode()) % _PULSE_EVERY_MS
    before = incident.start + timedelta(milliseconds=phase_ms - _PULSE_EVERY_MS)
    yield _pulse(incident, before, 0, _healthy_broker(broker, _WINDOW_MS))
    duration_ms = (incident.end - incident.start) // timedelta(milliseconds=1)
    hang_ages_ms = range(phase_ms, duration_ms, _PULSE_EVERY_MS)
    for sequence, hang_ms in enumerate(hang_ages_ms, 1):
        at = incident.start + timedelta(milliseconds=hang_ms)
        yield _pulse(incident, at, sequence, _hung_broker(broker, hang_ms))
    recovered_at = incident.end + timedelta(milliseconds=_RECOVERED_AFTER_MS + phase_ms)
    yield _pulse(
        incident, recovered_at, len(hang_ages_ms) + 1, _healthy_broker(broker, _RECOVERED_AFTER_MS + phase_ms)
    )


def _pulse(incident: SimulatedIncident, at: datetime, sequence: int, *brokers: BrokerPulse) -> ProbePulse:
    return ProbePulse(
        agent_id="simulated",
        run_id=incident.id,
        vantage="simulated",
        cluster_id=incident.cluster_id,
        sequence=sequence,
        emitted_at=at,
        window_ms=_WINDOW_MS,
        brokers=brokers,
    )


def _hung_broker(broker: int, hang_ms: int) -> BrokerPulse:
    """Return the pulse of a broker that hangs since ``hang_ms``; it stays in sync until it is fenced."""
    failed = max(0, hang_ms - _DEADLINE_MS) // _PROBE_EVERY_MS
    due = _WINDOW_MS // _PROBE_EVERY_MS
    leader = LegPulse(
        leg=Leg.LEADER,
        due=due,
        succeeded=max(0, due - hang_ms // _PROBE_EVERY_MS),
        failed=failed,
        outstanding=hang_ms // _PROBE_EVERY_MS - failed,
        oldest_outstanding_ms=min(hang_ms, _DEADLINE_MS),
        success_age_ms=hang_ms + _SUCCESS_AGE_MS,
        p50_us=None,
        p99_us=None,
    )
    return _broker(broker, hang_ms + _ANSWER_AGE_MS, leader, in_sync=hang_ms < _FENCED_AFTER_MS)


def _healthy_broker(broker: int, healthy_ms: int) -> BrokerPulse:
    """Return the pulse of a broker that has been healthy for ``healthy_ms``."""
    due = _WINDOW_MS // _PROBE_EVERY_MS
    succeeded = healthy_ms // _PROBE_EVERY_MS
    leader = LegPulse(Leg.LEADER, due, succeeded, due - succeeded, 0, None, _SUCCESS_AGE_MS, None, None)
    return _broker(broker, _ANSWER_AGE_MS, leader, in_sync=True)


def _broker(broker: int, answer_age_ms: int, leader: LegPulse, *, in_sync: bool) -> BrokerPulse:
    return BrokerPulse(
        broker_id=broker,
        leads=in_sync,
        in_sync=in_sync,
        fenced=not in_sync,
        answer_age_ms=answer_age_ms,
        answer_us=None,
        legs=(leader,),
    )
