"""What the telemetry cluster's topics still hold of a cluster."""

from datetime import datetime, timedelta

from fleetgauge_core.detection import BURN_CONDITIONS
from fleetgauge_core.detection.record_reader import decode_finding, decode_pulse
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import read_topic_values
from fleetgauge_operations.replay.incident import Incident

_CLIENT = "fleetgauge-replay"


def read_incident(
    telemetry: Telemetry, cluster_id: str, since: datetime, until: datetime, before: timedelta, note: str
) -> Incident:
    """An incident, with pulses from so long before it. Raises KafkaUnavailableError."""
    topics, access = telemetry.topics, telemetry.access
    pulses = [
        pulse
        for value in read_topic_values(access, topics.probe_pulse.name, _CLIENT, since - before)
        if (pulse := decode_pulse(value))
        and pulse.cluster_id == cluster_id
        and since - before <= pulse.emitted_at <= until
    ]
    findings = [
        found
        for value in read_topic_values(access, topics.health_events.name, _CLIENT, since)
        if (found := decode_finding(value))
        and found.subject.cluster_id == cluster_id
        and since <= found.event.at <= until
        and (found.is_alert or found.is_cleared)
        # What minutes tell is not to be found in pulses again.
        and found.subject.condition not in BURN_CONDITIONS
    ]
    pulses.sort(key=lambda one: one.emitted_at)
    return Incident(cluster_id, since, until, note, tuple(pulses), tuple(findings))
