"""The records as frozen dataclasses. Times are aware UTC datetimes; latencies are integer microseconds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from fleetgauge_core.contract.schemas import (
    CLUSTER_CHANGE,
    EARLIER_PROBE_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
)
from fleetgauge_core.contract.single_object import RecordDecodeError


def _field_values(record: Any) -> dict[str, Any]:
    """Return a record's fields by name; asdict would copy nested values, four times slower."""
    return {name: getattr(record, name) for name in record.__slots__}


class Leg(StrEnum):
    """The path of a probe through the cluster."""

    CLIENT = "client"
    """Produced with acks=all to the current leader and consumed again: the latency that a client sees."""
    LEADER = "leader"
    """Produced with acks=1, valid only if the home broker acknowledges it: that broker's own latency."""


@dataclass(frozen=True, slots=True)
class ProbeMinute:
    """The probes of one home broker, leg, vantage and minute; probe_minute_v1.avsc documents the fields."""

    agent_id: str
    agent_version: str
    run_id: str
    sequence: int
    vantage: str
    cluster_id: str
    kafka_cluster_uuid: str
    broker_id: int
    rack: str | None
    leg: Leg
    minute: datetime
    expected_brokers: tuple[int, ...]
    attempted: int
    acknowledged: int
    received: int
    ack_us: tuple[int, ...]
    e2e_us: tuple[int, ...]
    produce_failures: Mapping[str, int]
    consume_failures: Mapping[str, int]
    lost: int
    duplicated: int
    out_of_order: int
    schedule_lag_p95_us: int
    schedule_lag_max_us: int
    led_by: tuple[int, ...]
    leader_epoch: int | None
    emitted_at: datetime

    @property
    def success_us(self) -> tuple[int, ...]:
        """Latencies of the successful probes, ascending.

        End-to-end latencies on the client leg, acknowledgement latencies on the leader leg.
        """
        return self.e2e_us if self.leg is Leg.CLIENT else self.ack_us

    def encode(self) -> bytes:
        """Return this record as a Kafka record value."""
        return PROBE_MINUTE.encode(_field_values(self))

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Return the minute in a Kafka record value.

        Raises: RecordDecodeError if the value is not a ProbeMinute.
        """
        fields = PROBE_MINUTE.decode(value)
        try:
            leg = Leg(fields["leg"])
        except ValueError as error:
            raise RecordDecodeError("not_decodable", str(error)) from error
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**fields | lists | {"leg": leg})


@dataclass(frozen=True, slots=True)
class LegPulse:
    """The probes of one leg over the last ``window_ms`` of the pulse; counts are numbers of probes.

    ``agent_fault`` is set while they fail by the agent's own fault; such probes are in no count.
    """

    leg: Leg
    due: int
    succeeded: int
    failed: int
    outstanding: int
    oldest_outstanding_ms: int | None
    success_age_ms: int | None
    p50_us: int | None
    p99_us: int | None
    agent_fault: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerPulse:
    """The current state of one broker as one agent sees it.

    Fields that an earlier schema version does not have are None.
    """

    broker_id: int
    leads: bool
    in_sync: bool
    fenced: bool
    answer_age_ms: int | None
    answer_us: int | None
    legs: tuple[LegPulse, ...]
    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    silence: str | None = None
    requests_waiting: int | None = None
    stalled_ms: int | None = None
    offline_dirs: int | None = None
    connection_fault: str | None = None

    def leg_pulse(self, leg: Leg) -> LegPulse | None:
        """Return the pulse of a leg; None if the agent does not measure that leg."""
        return next((pulse for pulse in self.legs if pulse.leg is leg), None)


@dataclass(frozen=True, slots=True)
class ProbePulse:
    """The current state of one cluster as one agent sees it; it also serves as the agent's heartbeat.

    Fields that an earlier schema version does not have are None.
    """

    agent_id: str
    run_id: str
    vantage: str
    cluster_id: str
    sequence: int
    emitted_at: datetime
    window_ms: int
    brokers: tuple[BrokerPulse, ...]
    bootstrap_age_ms: int | None = None
    bootstrap_us: int | None = None
    bootstrap_failure: str | None = None

    def encode(self) -> bytes:
        """Return this record as a Kafka record value."""
        brokers = [
            _field_values(broker) | {"legs": [_field_values(leg) for leg in broker.legs]}
            for broker in self.brokers
        ]
        return PROBE_PULSE.encode(_field_values(self) | {"brokers": brokers})

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Return the pulse in a Kafka record value of any schema version.

        Raises: RecordDecodeError if the value is not a ProbePulse.
        """
        writers = (schema for schema in EARLIER_PROBE_PULSES if value.startswith(schema.header))
        fields = next(writers, PROBE_PULSE).decode(value)
        try:
            brokers = tuple(_broker_pulse(broker) for broker in fields["brokers"])
        except ValueError as error:
            raise RecordDecodeError("not_decodable", str(error)) from error
        return cls(**fields | {"brokers": brokers})


def _broker_pulse(fields: dict[str, Any]) -> BrokerPulse:
    legs = tuple(LegPulse(**leg | {"leg": Leg(leg["leg"])}) for leg in fields["legs"])
    return BrokerPulse(**fields | {"legs": legs})


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """A state change of one broker, or of the cluster if ``broker_id`` is None."""

    event_id: str
    fingerprint: str
    cluster_id: str
    broker_id: int | None
    at: datetime
    from_state: str
    to_state: str
    kind: str
    evidence: str

    def encode(self) -> bytes:
        """Return this record as a Kafka record value."""
        return HEALTH_EVENT.encode(_field_values(self))

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Return the event in a Kafka record value.

        Raises: RecordDecodeError if the value is not a HealthEvent.
        """
        return cls(**HEALTH_EVENT.decode(value))


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A change of a cluster, or one that was reported; cluster_change_v1.avsc documents the fields."""

    event_id: str
    change_id: str
    cluster_id: str | None
    kind: str
    phase: str
    at: datetime
    starts: datetime
    ends: datetime | None
    source: str
    broker_id: int | None = None
    topic: str | None = None
    segment: str | None = None
    segment_value: str | None = None
    before: str | None = None
    after: str | None = None
    evidence: str = "{}"
    author: str | None = None
    title: str | None = None
    link: str | None = None

    def encode(self) -> bytes:
        """Return this record as a Kafka record value."""
        return CLUSTER_CHANGE.encode(_field_values(self))

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Return the change in a Kafka record value.

        Raises: RecordDecodeError if the value is not a ClusterChange that everybody who reads it can use.
        """
        record = cls(**CLUSTER_CHANGE.decode(value))
        try:
            record.check()
        except ValueError as error:
            raise RecordDecodeError("not_decodable", str(error)) from error
        return record

    def check(self) -> None:
        """Check what the schema does not say: its times, and the fields that hold JSON.

        Raises: ValueError with the first field that is wrong; its message is one line.
        """
        for name in ("at", "starts", "ends"):
            at: datetime | None = getattr(self, name)
            if at is not None and not _EARLIEST_CHANGE <= at < _LATEST_CHANGE:
                years = f"{_EARLIEST_CHANGE.year} to {_LATEST_CHANGE.year}"
                raise ValueError(f"{name}: is outside of the years {years}")
        if self.ends is not None and self.ends < self.starts:
            raise ValueError("ends: is before starts")
        for name in ("before", "after", "evidence"):
            _check_json(name, getattr(self, name))


#: Times are shifted by weeks and compared in every batch; a change is never far from the present.
_EARLIEST_CHANGE, _LATEST_CHANGE = datetime(1970, 2, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
#: Values that are nested deeper could be read in some places, and not in others with less of the stack left.
_MAX_JSON_DEPTH = 20


def _check_json(name: str, text: str | None) -> None:
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: is not JSON") from error
    if name == "evidence" and not isinstance(value, dict):
        raise ValueError(f"{name}: is not a JSON object")
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_JSON_DEPTH:
            raise ValueError(f"{name}: is nested deeper than {_MAX_JSON_DEPTH} levels")
        containers = [each for each in level if isinstance(each, dict | list)]
        level = [
            child for each in containers for child in (each.values() if isinstance(each, dict) else each)
        ]
