"""A minimal Kafka protocol client for the few requests that the runner sends to its brokers.

A full Kafka client would hide what is checked here, whether one specific address responds, and would cost the
runner several threads and 15 MiB of memory.
"""

import socket
import struct

_CLIENT_ID = b"fleetgauge-local"
_MAX_RESPONSE_BYTES = 1 << 20


def send_request(address: tuple[str, int], api: int, version: int, body: bytes, timeout_s: float) -> bytes:
    """Send a request over a new connection and return the body of the response.

    Raises: OSError when the broker does not respond in time.
    """
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.settimeout(timeout_s)
        connection.sendall(_request(api, version, body))
        return _receive(connection)


def encode_string(value: str) -> bytes:
    """Return a protocol string: UTF-8 with a 16-bit length prefix."""
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def encode_array(*elements: bytes) -> bytes:
    """Return a protocol array: encoded elements with a 32-bit count prefix."""
    return struct.pack(">i", len(elements)) + b"".join(elements)


def _request(api: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api, version, 0, len(_CLIENT_ID)) + _CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def _receive(connection: socket.socket) -> bytes:
    """Return the response without its correlation id, as each connection has only one request."""
    (size,) = struct.unpack(">i", _receive_exactly(connection, 4))
    if not 4 <= size <= _MAX_RESPONSE_BYTES:
        raise OSError(f"not a Kafka response: length {size} bytes")
    return _receive_exactly(connection, size)[4:]


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection")
        received += chunk
    return bytes(received)
