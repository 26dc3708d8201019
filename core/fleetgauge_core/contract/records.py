"""The records as frozen values. Times are aware UTC datetimes, latencies integer microseconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from fleetgauge_core.contract.schemas import (
    EARLIER_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
)
from fleetgauge_core.contract.single_object import ContractError


def _shallow(record: Any) -> dict[str, Any]:
    """Field by field. Not asdict, which copies all that is in them: four times as long."""
    return {name: getattr(record, name) for name in record.__slots__}


class Leg(StrEnum):
    """Which path a probe takes."""

    CLIENT = "client"
    """acks=all to whoever leads, and consumed: what a client feels."""
    LEADER = "leader"
    """acks=1, and only the home's own answer counts: what one broker does alone."""


@dataclass(frozen=True, slots=True)
class ProbeMinute:
    """One home broker, leg, vantage and minute; see probe_minute_v1.avsc for every field."""

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
        """The successes' latencies, ascending: a client's end at its consumer, a leader's at its answer."""
        return self.e2e_us if self.leg is Leg.CLIENT else self.ack_us

    def encode(self) -> bytes:
        return PROBE_MINUTE.encode(_shallow(self))

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Raises ContractError for anything but a minute."""
        fields = PROBE_MINUTE.decode(value)
        try:
            leg = Leg(fields["leg"])
        except ValueError as error:
            raise ContractError("not_decodable", str(error)) from error
        lists = {name: tuple(one) for name, one in fields.items() if isinstance(one, list)}
        return cls(**fields | lists | {"leg": leg})


@dataclass(frozen=True, slots=True)
class LegPulse:
    """One leg's last seconds; counts are of probes, ages in ms."""

    leg: Leg
    due: int
    succeeded: int
    failed: int
    outstanding: int
    oldest_outstanding_ms: int | None
    success_age_ms: int | None
    p50_us: int | None
    p99_us: int | None


@dataclass(frozen=True, slots=True)
class BrokerPulse:
    """One broker as one agent sees it now. What an earlier version did not tell is None."""

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

    def leg(self, leg: Leg) -> LegPulse | None:
        for one in self.legs:
            if one.leg is leg:
                return one
        return None


@dataclass(frozen=True, slots=True)
class ProbePulse:
    """One cluster as one agent sees it now, and its heartbeat.

    What an earlier version did not tell is None.
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
        brokers = [_shallow(one) | {"legs": [_shallow(leg) for leg in one.legs]} for one in self.brokers]
        return PROBE_PULSE.encode(_shallow(self) | {"brokers": brokers})

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Of any version. Raises ContractError for anything but a pulse."""
        earlier = (schema for schema in EARLIER_PULSES if value.startswith(schema.header))
        fields = next(earlier, PROBE_PULSE).decode(value)
        try:
            brokers = tuple(_broker_pulse(one) for one in fields["brokers"])
        except ValueError as error:
            raise ContractError("not_decodable", str(error)) from error
        return cls(**fields | {"brokers": brokers})


def _broker_pulse(fields: dict[str, Any]) -> BrokerPulse:
    legs = tuple(LegPulse(**leg | {"leg": Leg(leg["leg"])}) for leg in fields["legs"])
    return BrokerPulse(**fields | {"legs": legs})


@dataclass(frozen=True, slots=True)
class HealthEvent:
    """A state change of one broker (or, with broker_id None, of the cluster)."""

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
        return HEALTH_EVENT.encode(_shallow(self))

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Raises ContractError for anything but a health event."""
        return cls(**HEALTH_EVENT.decode(value))
