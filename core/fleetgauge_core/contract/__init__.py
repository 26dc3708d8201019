"""The records that agents and the watch produce to the telemetry cluster.

Records are encoded with Avro's single-object encoding; the schemas are the ``*.avsc`` files in this folder.
"""

from fleetgauge_core.contract.records import (
    BrokerPulse,
    ClusterChange,
    HealthEvent,
    Leg,
    LegPulse,
    ProbeMinute,
    ProbePulse,
)
from fleetgauge_core.contract.schemas import (
    CLUSTER_CHANGE,
    EARLIER_PROBE_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
)
from fleetgauge_core.contract.single_object import (
    HEADER_BYTES,
    MAX_RECORD_BYTES,
    AvroSchema,
    RecordDecodeError,
)

__all__ = [
    "CLUSTER_CHANGE",
    "EARLIER_PROBE_PULSES",
    "HEADER_BYTES",
    "HEALTH_EVENT",
    "MAX_RECORD_BYTES",
    "PROBE_MINUTE",
    "PROBE_PULSE",
    "AvroSchema",
    "BrokerPulse",
    "ClusterChange",
    "HealthEvent",
    "Leg",
    "LegPulse",
    "ProbeMinute",
    "ProbePulse",
    "RecordDecodeError",
]
