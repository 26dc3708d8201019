"""Kafka's protocol by hand, for the few questions that the fleet asks its brokers.

Kafka clients belong to the probes; they would also hide the very thing asked here, whether this one
address answers, and the runner would have their threads and 15 MiB more.
"""

import socket
import struct

_CLIENT_ID = b"fleetgauge-local"
_MAX_ANSWER_BYTES = 1 << 20


def ask(address: tuple[str, int], api: int, version: int, body: bytes, timeout_s: float) -> bytes:
    """The body of the answer. Raises OSError where there is none."""
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.settimeout(timeout_s)
        connection.sendall(_request(api, version, body))
        return _receive(connection)


def text(value: str) -> bytes:
    """A string as the protocol has it: led by a 16-bit length."""
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def array(*elements: bytes) -> bytes:
    """An array: led by a 32-bit count."""
    return struct.pack(">i", len(elements)) + b"".join(elements)


def _request(api: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api, version, 0, len(_CLIENT_ID)) + _CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def _receive(connection: socket.socket) -> bytes:
    """Without the correlation id, as there is one question to a connection."""
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 4 <= size <= _MAX_ANSWER_BYTES:
        raise OSError(f"an answer of {size} bytes is not Kafka's")
    return _exactly(connection, size)[4:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection")
        received += chunk
    return bytes(received)
