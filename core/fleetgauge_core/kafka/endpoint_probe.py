"""A blocking probe of one HOST:PORT: whether a Kafka listener answers there, and if not, the cause.

A Kafka client fails over between the addresses of a cluster; this probe tests exactly one address, so that
a failing one can be reported. ``cold_connection`` is its asyncio counterpart, which times each step.
"""

import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from fleetgauge_core.kafka.api_versions import (
    API_VERSIONS_REQUEST,
    KafkaVersion,
    parse_certificate_expiry,
    parse_kafka_version,
)
from fleetgauge_core.kafka.connection_failure import (
    ConnectionFailure,
    classify_connect_error,
    classify_handshake_error,
    classify_response_error,
    parse_response_size,
)
from fleetgauge_core.runtime.deadline import run_until_deadline

_DEFAULT_PORT = 9092
#: Resolving, connecting and waiting for the response may take a part each.
_PROBE_TIMEOUT_S = 2.5
_STEP_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """A broker's response to a probe: its Kafka version, and when its certificate expires (None: no TLS)."""

    kafka_version: KafkaVersion
    certificate_expires_at: datetime | None = None


EndpointProbeResult = EndpointResponse | ConnectionFailure


def parse_bootstrap(bootstrap: str) -> tuple[str, ...]:
    """Return each HOST:PORT of a ``bootstrap.servers`` value; the port is 9092 unless given."""
    addresses = (address.strip() for address in bootstrap.split(","))
    return tuple(address if _has_port(address) else f"{address}:{_DEFAULT_PORT}" for address in addresses)


def probe_endpoints(addresses: Iterable[str], tls: ssl.SSLContext | None) -> dict[str, EndpointProbeResult]:
    """Probe all addresses at once; return the result by HOST:PORT after at most 2.5 s.

    An address without a result by then counts as CONNECTION_TIMED_OUT.
    """
    results: dict[str, EndpointProbeResult] = dict.fromkeys(addresses, ConnectionFailure.CONNECTION_TIMED_OUT)

    def probe(address: str) -> None:
        results[address] = probe_endpoint(address, tls)

    run_until_deadline([partial(probe, address) for address in results], _PROBE_TIMEOUT_S)
    return dict(results)


def probe_endpoint(address: str, tls: ssl.SSLContext | None = None) -> EndpointProbeResult:
    """Connect to HOST:PORT, exchange ApiVersions and disconnect; each step may take 1 s."""
    name, _, port = address.rpartition(":")
    host = name.strip("[]")
    classify = classify_connect_error
    try:
        with socket.create_connection((host, int(port)), _STEP_TIMEOUT_S) as connection:
            if tls is None:
                classify = classify_response_error
                return _exchange(connection)
            classify = classify_handshake_error
            with tls.wrap_socket(connection, server_hostname=host) as tls_connection:
                classify = classify_response_error
                expires_at = parse_certificate_expiry(tls_connection.getpeercert())
                return _exchange(tls_connection, expires_at)
    except (OSError, UnicodeError, struct.error) as error:
        return classify(error)


def _exchange(
    connection: socket.socket, certificate_expires_at: datetime | None = None
) -> EndpointProbeResult:
    connection.sendall(API_VERSIONS_REQUEST)
    with connection.makefile("rb") as stream:
        size = parse_response_size(stream.read(4))
        if isinstance(size, ConnectionFailure):
            return size
        return EndpointResponse(parse_kafka_version(stream.read(size)), certificate_expires_at)


def _has_port(address: str) -> bool:
    return address.rpartition(":")[2].isdigit() and not address.endswith("]")
