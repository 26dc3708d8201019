"""The wire records: what the agent says and everybody else reads.

Avro in single-object encoding; the schemas lie beside this file as ``*.avsc``.
"""

from fleetgauge_core.contract.records import (
    BrokerPulse,
    HealthEvent,
    Leg,
    LegPulse,
    ProbeMinute,
    ProbePulse,
)
from fleetgauge_core.contract.schemas import (
    EARLIER_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
)
from fleetgauge_core.contract.single_object import (
    HEADER_BYTES,
    MAX_RECORD_BYTES,
    ContractError,
    Schema,
)

__all__ = [
    "EARLIER_PULSES",
    "HEADER_BYTES",
    "HEALTH_EVENT",
    "MAX_RECORD_BYTES",
    "PROBE_MINUTE",
    "PROBE_PULSE",
    "BrokerPulse",
    "ContractError",
    "HealthEvent",
    "Leg",
    "LegPulse",
    "ProbeMinute",
    "ProbePulse",
    "Schema",
]
