"""What the telemetry cluster's topics still hold of a cluster."""

from datetime import datetime, timedelta

from fleetgauge_core.detection import BURNS
from fleetgauge_core.detection.record_reader import finding_in, pulse_in
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import values_now
from fleetgauge_operations.replay.incident import Incident

_CLIENT = "fleetgauge-replay"


def kept(
    telemetry: Telemetry, cluster_id: str, since: datetime, until: datetime, before: timedelta, note: str
) -> Incident:
    """An incident, with pulses from so long before it. Raises KafkaUnavailableError."""
    topics, access = telemetry.topics, telemetry.access
    pulses = [
        pulse
        for value in values_now(access, topics.probe_pulse.name, _CLIENT, since - before)
        if (pulse := pulse_in(value))
        and pulse.cluster_id == cluster_id
        and since - before <= pulse.emitted_at <= until
    ]
    findings = [
        found
        for value in values_now(access, topics.health_events.name, _CLIENT, since)
        if (found := finding_in(value))
        and found.subject.cluster_id == cluster_id
        and since <= found.event.at <= until
        and (found.names or found.clears)
        # What minutes tell is not to be found in pulses again.
        and found.subject.chain not in BURNS
    ]
    pulses.sort(key=lambda one: one.emitted_at)
    return Incident(cluster_id, since, until, note, tuple(pulses), tuple(findings))
