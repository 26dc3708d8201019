"""Who is registered, fenced brokers included (KIP-1073's DescribeCluster v2).

librdkafka shows live brokers only, so this goes through kafka-python.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.errors import KafkaError

from fleetgauge_probes.kafka.asking import asking
from fleetgauge_probes.kafka.errors import KafkaUnavailableError


@dataclass(frozen=True, slots=True)
class Registration:
    """One registered broker and the listener that clients use."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class Registry:
    """A cluster's registered brokers by id."""

    kafka_cluster_uuid: str
    brokers: Mapping[int, Registration]


def registered_brokers(bootstrap: str, timeout_ms: int = 4000) -> Registry:
    """Ask once. Raises KafkaUnavailableError when nobody answers in time."""
    try:
        with asking(bootstrap.split(","), "fleetgauge-registry", timeout_ms, 2 * timeout_ms) as (admin, _):
            return registry(admin.describe_cluster())
    except (KafkaError, OSError) as error:
        raise KafkaUnavailableError(f"{bootstrap}: {error}") from error


def registry(described: Mapping[str, Any]) -> Registry:
    """What kafka-python's ``describe_cluster`` says of the brokers."""
    brokers = (_registration(one) for one in described["brokers"])
    return Registry(described["cluster_id"], {one.broker_id: one for one in brokers})


def _registration(one: Mapping[str, Any]) -> Registration:
    return Registration(
        broker_id=int(one["broker_id"]),
        host=str(one["host"]),
        port=int(one["port"]),
        rack=one.get("rack"),
        fenced=bool(one.get("is_fenced", False)),
    )
