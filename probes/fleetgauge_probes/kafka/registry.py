"""Who is registered, fenced brokers included (KIP-1073's DescribeCluster v2).

librdkafka shows live brokers only, so this goes through kafka-python.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

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
        admin = KafkaAdminClient(
            bootstrap_servers=bootstrap.split(","),
            client_id="fleetgauge-registry",
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=2 * timeout_ms,
        )
    except (KafkaError, OSError) as error:
        raise KafkaUnavailableError(f"{bootstrap}: {error}") from error
    try:
        answer = admin.describe_cluster()
    except (KafkaError, OSError) as error:
        raise KafkaUnavailableError(f"{bootstrap}: {error}") from error
    finally:
        admin.close()
    return Registry(answer["cluster_id"], {one["broker_id"]: _registration(one) for one in answer["brokers"]})


def _registration(one: Mapping[str, Any]) -> Registration:
    return Registration(
        broker_id=int(one["broker_id"]),
        host=str(one["host"]),
        port=int(one["port"]),
        rack=one.get("rack"),
        fenced=bool(one.get("is_fenced", False)),
    )
