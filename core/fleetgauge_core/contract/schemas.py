"""The schema versions of each record that are written or read."""

from fleetgauge_core.contract.single_object import AvroSchema

PROBE_MINUTE = AvroSchema("probe_minute_v1.avsc")
PROBE_PULSE = AvroSchema("probe_pulse_v4.avsc")
#: Still written by agents that have not been upgraded.
EARLIER_PROBE_PULSES = (
    AvroSchema("probe_pulse_v3.avsc"),
    AvroSchema("probe_pulse_v2.avsc"),
    AvroSchema("probe_pulse_v1.avsc"),
)
HEALTH_EVENT = AvroSchema("health_event_v1.avsc")
CLUSTER_CHANGE = AvroSchema("cluster_change_v1.avsc")
