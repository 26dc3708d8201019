"""What the telemetry cluster's topics still hold of a cluster."""

from datetime import datetime, timedelta

from fleetgauge_operations.replay.incident import Incident
from fleetgauge_pipelines.detection import recalled
from fleetgauge_probes.contract import ContractError, HealthEvent, ProbePulse
from fleetgauge_probes.fleet import Telemetry
from fleetgauge_probes.kafka import values_now

_CLIENT = "fleetgauge-replay"


def kept(
    telemetry: Telemetry, cluster_id: str, since: datetime, until: datetime, before: timedelta, note: str
) -> Incident:
    """An incident, with pulses from so long before it. Raises KafkaUnavailableError."""
    topics, access = telemetry.topics, telemetry.access
    pulses = [
        pulse
        for value in values_now(access, topics.probe_pulse.name, _CLIENT, since - before)
        if (pulse := _pulse(value))
        and pulse.cluster_id == cluster_id
        and since - before <= pulse.emitted_at <= until
    ]
    findings = [
        found
        for value in values_now(access, topics.health_events.name, _CLIENT, since)
        if (event := _event(value)) and event.cluster_id == cluster_id and since <= event.at <= until
        if (found := recalled(event)) and (found.names or found.clears)
    ]
    pulses.sort(key=lambda one: one.emitted_at)
    return Incident(cluster_id, since, until, note, tuple(pulses), tuple(findings))


def _pulse(value: bytes) -> ProbePulse | None:
    """None for what no watch could read either."""
    try:
        return ProbePulse.decode(value)
    except ContractError:
        return None


def _event(value: bytes) -> HealthEvent | None:
    try:
        return HealthEvent.decode(value)
    except ContractError:
        return None
