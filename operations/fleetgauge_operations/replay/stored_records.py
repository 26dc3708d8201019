"""Read an incident from the pulses, findings and changes that the telemetry topics still retain."""

from datetime import datetime, timedelta

from fleetgauge_core.detection import BURN_CONDITIONS
from fleetgauge_core.detection.record_reader import decode_finding, decode_pulse
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import read_topic_values
from fleetgauge_operations.changes.change_topic import read_change_records, select_changes
from fleetgauge_operations.replay.incident import Incident

_CLIENT_ID = "fleetgauge-replay"


def read_incident(
    telemetry: Telemetry, cluster_id: str, since: datetime, until: datetime, lead: timedelta, note: str
) -> Incident:
    """Return the incident of a cluster, with pulses from ``lead`` before it.

    Raises: KafkaUnavailableError.
    """
    topics, access = telemetry.topics, telemetry.access
    pulses = [
        pulse
        for value in read_topic_values(access, topics.probe_pulse.name, _CLIENT_ID, since - lead)
        if (pulse := decode_pulse(value))
        and pulse.cluster_id == cluster_id
        and since - lead <= pulse.emitted_at <= until
    ]
    findings = [
        finding
        for value in read_topic_values(access, topics.health_events.name, _CLIENT_ID, since)
        if (finding := decode_finding(value))
        and finding.subject.cluster_id == cluster_id
        and since <= finding.event.at <= until
        and (finding.is_alert or finding.is_cleared)
        # Findings about error budgets derive from probe minutes, so that pulses do not reproduce them.
        and finding.subject.condition not in BURN_CONDITIONS
    ]
    pulses.sort(key=lambda pulse: pulse.emitted_at)
    # Changes of segments and of the whole fleet have no cluster.
    changes = [
        record
        for record in select_changes(read_change_records(telemetry), None, since - lead)
        if record.cluster_id in (cluster_id, None) and record.starts <= until
    ]
    return Incident(cluster_id, since, until, note, tuple(pulses), tuple(findings), tuple(changes))
