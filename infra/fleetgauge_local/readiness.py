"""Ask a broker which brokers it knows: one Metadata request, spoken by hand.

Kafka clients belong to the probes; they would also hide the very thing asked here, whether
this one address answers.
"""

import socket
import struct

_METADATA = 3
_VERSION = 1
_CLIENT_ID = b"fleetgauge-local"
_NO_TOPICS = 0
_MAX_ANSWER_BYTES = 1 << 20


def brokers_seen(host: str, port: int, timeout_s: float) -> frozenset[int]:
    """The ids of the live brokers that the one at this address knows; none if it does not answer."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(_request())
            return _brokers(_receive(connection))
    except (OSError, struct.error):
        return frozenset()


def _request() -> bytes:
    header = struct.pack(">hhih", _METADATA, _VERSION, 0, len(_CLIENT_ID)) + _CLIENT_ID
    message = header + struct.pack(">i", _NO_TOPICS)
    return struct.pack(">i", len(message)) + message


def _receive(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 0 <= size <= _MAX_ANSWER_BYTES:
        raise OSError(f"an answer of {size} bytes is not Kafka's")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection")
        received += chunk
    return bytes(received)


def _brokers(answer: bytes) -> frozenset[int]:
    """correlation id, then an array of (id, host, port, rack), strings led by a 16-bit length."""
    (count,) = struct.unpack_from(">i", answer, 4)
    at = 8
    seen = []
    for _ in range(count):
        broker, host_length = struct.unpack_from(">ih", answer, at)
        at += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(0, rack_length)
        seen.append(broker)
    return frozenset(seen)
