"""Ask a broker which brokers it knows: one Metadata request."""

import struct

from fleetgauge_local.wire import array, ask

_METADATA = 3
_VERSION = 1


def brokers_seen(host: str, port: int, timeout_s: float) -> frozenset[int]:
    """The ids of the live brokers that the one at this address knows; none if it does not answer."""
    try:
        # An empty array of topics: none of them is asked for.
        return _brokers(ask((host, port), _METADATA, _VERSION, array(), timeout_s))
    except (OSError, struct.error):
        return frozenset()


def _brokers(answer: bytes) -> frozenset[int]:
    """An array of (id, host, port, rack), strings led by a 16-bit length."""
    (count,) = struct.unpack_from(">i", answer)
    at = 4
    seen = []
    for _ in range(count):
        broker, host_length = struct.unpack_from(">ih", answer, at)
        at += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(0, rack_length)
        seen.append(broker)
    return frozenset(seen)
