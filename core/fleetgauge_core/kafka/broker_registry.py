"""Who is registered, fenced brokers included (KIP-1073's DescribeCluster v2).

librdkafka shows live brokers only, so this goes through kafka-python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka.errors import KafkaError

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.authentication import identity_refusal
from fleetgauge_core.kafka.connection_failure import Silence
from fleetgauge_core.kafka.credentials import tls_context
from fleetgauge_core.kafka.endpoint_probe import addresses, knock_at
from fleetgauge_core.kafka.errors import AUTHENTICATION, KafkaTurnedAwayError, KafkaUnavailableError
from fleetgauge_core.kafka.kafka_python_admin import asking


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


def registered_brokers(access: Access, timeout_ms: int = 4000) -> Registry:
    """Ask once. Raises KafkaUnavailableError where nobody answers in time, KafkaTurnedAwayError."""
    doors = open_doors(access)
    try:
        with asking(doors, "fleetgauge-registry", timeout_ms, 2 * timeout_ms) as (admin, _):
            return registry(admin.describe_cluster())
    except (KafkaError, OSError) as error:
        refusal = identity_refusal(doors)
        if refusal:
            raise KafkaTurnedAwayError(refusal, AUTHENTICATION) from error
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}") from error


def open_doors(access: Access) -> Access:
    """By the addresses that answer: a knock says why one does not, a client only that it took too long.

    Raises KafkaUnavailableError, KafkaTurnedAwayError where none does.
    """
    doors = knock_at(addresses(access.bootstrap), tls_context(access))
    silences = {address: knock for address, knock in doors.items() if isinstance(knock, Silence)}
    if len(silences) == len(doors):
        first = next(iter(silences.values()))
        words = "; ".join(f"{address}: {silence.value}" for address, silence in silences.items())
        raise (KafkaTurnedAwayError if first.of_security else KafkaUnavailableError)(
            words, first.name.lower()
        )
    return replace(access, bootstrap=",".join(address for address in doors if address not in silences))


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
