"""List the brokers that a broker knows, by a Metadata request."""

import struct

from fleetgauge_local.kafka_protocol import encode_array, send_request

_METADATA = 3
_VERSION = 1


def list_known_brokers(host: str, port: int, timeout_s: float) -> frozenset[int]:
    """Return the ids of the live brokers in this broker's metadata; empty if it does not respond."""
    try:
        # An empty topic array requests no topics.
        return _parse_broker_ids(send_request((host, port), _METADATA, _VERSION, encode_array(), timeout_s))
    except (OSError, struct.error):
        return frozenset()


def _parse_broker_ids(response: bytes) -> frozenset[int]:
    """Parse broker ids from the response: an array of (id, host, port, rack)."""
    (count,) = struct.unpack_from(">i", response)
    offset = 4
    brokers = []
    for _ in range(count):
        broker, host_length = struct.unpack_from(">ih", response, offset)
        offset += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", response, offset)
        offset += 2 + max(0, rack_length)
        brokers.append(broker)
    return frozenset(brokers)
