"""The versions in use."""

from fleetgauge_core.contract.single_object import Schema

PROBE_MINUTE = Schema("probe_minute_v1.avsc")
PROBE_PULSE = Schema("probe_pulse_v3.avsc")
#: Agents that were not upgraded yet still write them.
EARLIER_PULSES = (Schema("probe_pulse_v2.avsc"), Schema("probe_pulse_v1.avsc"))
HEALTH_EVENT = Schema("health_event_v1.avsc")
