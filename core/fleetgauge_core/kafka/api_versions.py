"""The ApiVersions exchange, without I/O: the request, the parsed response, the certificate's validity.

Every broker answers ApiVersions (key 18) version 0 before authentication, so the exchange shows that
a Kafka listener is alive, without credentials and without another broker.
"""

import ssl
import struct
from datetime import UTC, datetime
from typing import Any

from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

KafkaVersion = tuple[int, ...]

_API_KEY, _API_VERSION, _CORRELATION_ID = 18, 0, 1
# Brokers see this client ID in their request logs.
_CLIENT_ID = b"fleetgauge-answer"
_BODY = struct.pack(
    f">hhih{len(_CLIENT_ID)}s", _API_KEY, _API_VERSION, _CORRELATION_ID, len(_CLIENT_ID), _CLIENT_ID
)
#: A whole request frame: its size (4 bytes), then the header; version 0 has no body.
API_VERSIONS_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
#: The response's correlation ID, error code and number of APIs; then key, lowest and highest version of each.
_HEAD, _API = struct.Struct(">ihi"), struct.Struct(">hhh")


def parse_kafka_version(response: bytes) -> KafkaVersion:
    """Return the broker's Kafka version, inferred from an ApiVersions response without its size.

    Raises: OSError if it answers another request; struct.error if it is too short.
    """
    correlation_id, _, count = _HEAD.unpack_from(response)
    if correlation_id != _CORRELATION_ID:
        raise OSError("response with another correlation ID")
    apis = response[_HEAD.size : _HEAD.size + count * _API.size]
    version_range_by_api = {key: (lowest, highest) for key, lowest, highest in _API.iter_unpack(apis)}
    return tuple(infer_broker_version_from_api_versions(version_range_by_api))


def parse_certificate_validity(
    certificate: dict[str, Any] | None,
) -> tuple[datetime, datetime] | tuple[None, None]:
    """Return ``notBefore`` and ``notAfter`` of a certificate from ``getpeercert``; None without TLS."""
    if not certificate:
        return None, None
    valid_from, expires_at = (
        datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate[key]), UTC)
        for key in ("notBefore", "notAfter")
    )
    return valid_from, expires_at
