"""A cluster's registered brokers, fenced ones included (DescribeCluster version 2, KIP-1073).

librdkafka lists live brokers only, so this module uses kafka-python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka.errors import KafkaError

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.authentication_check import find_authentication_error
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.credentials import create_tls_context
from fleetgauge_core.kafka.endpoint_probe import parse_bootstrap, probe_endpoints
from fleetgauge_core.kafka.errors import (
    AUTHENTICATION_FAILED,
    KafkaSecurityError,
    KafkaUnavailableError,
)
from fleetgauge_core.kafka.kafka_python_admin import connected_admin_client
from fleetgauge_core.kafka.own_resources import find_error_reason
from fleetgauge_core.metadata import BrokerRegistration


@dataclass(frozen=True, slots=True)
class BrokerRegistry:
    """The registered brokers of a cluster, by ID."""

    kafka_cluster_uuid: str
    brokers: Mapping[int, BrokerRegistration]


def read_broker_registry(access: ClusterAccess, timeout_ms: int = 4000) -> BrokerRegistry:
    """Read the registry once, without a retry.

    Raises: KafkaSecurityError if TLS or authentication fails; KafkaUnavailableError if no broker answers.
    """
    reachable = select_reachable_bootstrap(access)
    try:
        with connected_admin_client(reachable, "fleetgauge-registry", timeout_ms, 2 * timeout_ms) as (
            admin,
            _,
        ):
            return parse_broker_registry(admin.describe_cluster())
    except (KafkaError, OSError) as error:
        authentication_error = find_authentication_error(reachable)
        if authentication_error:
            raise KafkaSecurityError(authentication_error, AUTHENTICATION_FAILED) from error
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}", find_error_reason(error)) from error


def select_reachable_bootstrap(access: ClusterAccess) -> ClusterAccess:
    """Return the access with only those bootstrap addresses that answer a probe.

    Without the probes, a Kafka client would report a time-out in place of the cause.

    Raises: KafkaSecurityError or KafkaUnavailableError, by the first address's cause, if none answers.
    """
    results = probe_endpoints(parse_bootstrap(access.bootstrap), create_tls_context(access))
    failures = {
        address: result for address, result in results.items() if isinstance(result, ConnectionFailure)
    }
    if len(failures) == len(results):
        first = next(iter(failures.values()))
        message = "; ".join(f"{address}: {failure.description}" for address, failure in failures.items())
        error_class = KafkaSecurityError if first.is_security_failure else KafkaUnavailableError
        raise error_class(message, first.value)
    return replace(access, bootstrap=",".join(address for address in results if address not in failures))


def parse_broker_registry(described: Mapping[str, Any]) -> BrokerRegistry:
    """Convert the result of kafka-python's ``describe_cluster``."""
    registrations = (_parse_registration(broker) for broker in described["brokers"])
    return BrokerRegistry(
        described["cluster_id"], {registration.broker_id: registration for registration in registrations}
    )


def _parse_registration(broker: Mapping[str, Any]) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=int(broker["broker_id"]),
        host=str(broker["host"]),
        port=int(broker["port"]),
        rack=broker.get("rack"),
        fenced=bool(broker.get("is_fenced", False)),
    )
