"""A knock at one address: does Kafka answer there, and if not, what stands in the way?

Unlike a client it goes on to no other address, so that it can be said which one is silent.
"""

import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

from fleetgauge_core.kafka.cold_connection import (
    API_VERSIONS_REQUEST,
    CORRELATION_ID,
    MAX_ANSWER_BYTES,
    certificate_ends,
)
from fleetgauge_core.kafka.connection_failure import (
    Silence,
    in_the_answer,
    in_the_handshake,
    of_a_beginning,
    on_the_way,
)
from fleetgauge_core.runtime.deadline import in_time

_DEFAULT_PORT = 9092
#: A knock takes a name, a connection and an answer; each may take a part of the whole.
_KNOCK_S = 2.5
_STEP_S = 1.0
#: Correlation id, error code, how many protocols follow; then key, lowest and highest version of each.
_HEAD, _PROTOCOL = struct.Struct(">ihi"), struct.Struct(">hhh")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The Kafka version that the answer's protocols belong to, and until when the certificate is good."""

    version: Version
    certificate_ends: datetime | None = None


Knock = Reply | Silence


def addresses(bootstrap: str) -> tuple[str, ...]:
    """The HOST:PORT of a ``bootstrap.servers``."""
    named = (one.strip() for one in bootstrap.split(","))
    return tuple(one if _has_port(one) else f"{one}:{_DEFAULT_PORT}" for one in named)


def knock_at(where: Iterable[str], tls: ssl.SSLContext | None) -> dict[str, Knock]:
    """Knock at all of these HOST:PORT at once, for 2.5 s at most."""
    found: dict[str, Knock] = dict.fromkeys(where, Silence.TIMED_OUT)

    def note(address: str) -> None:
        found[address] = knock(address, tls)

    in_time([partial(note, address) for address in found], _KNOCK_S)
    return dict(found)


def knock(address: str, tls: ssl.SSLContext | None = None) -> Knock:
    """Connect, ask for the protocol versions, hang up."""
    name, _, port = address.rpartition(":")
    host = name.strip("[]")
    explain = on_the_way
    try:
        with socket.create_connection((host, int(port)), _STEP_S) as connection:
            if tls is None:
                explain = in_the_answer
                return _ask(connection)
            explain = in_the_handshake
            with tls.wrap_socket(connection, server_hostname=host) as secured:
                explain = in_the_answer
                return _ask(secured, certificate_ends(secured.getpeercert()))
    except (OSError, UnicodeError, struct.error) as error:
        return explain(error)


def _ask(connection: socket.socket, ends: datetime | None = None) -> Knock:
    connection.sendall(API_VERSIONS_REQUEST)
    with connection.makefile("rb") as answer:
        head = answer.read(4)
        (size,) = struct.unpack(">i", head)
        return of_a_beginning(head) or Reply(_version(answer.read(min(size, MAX_ANSWER_BYTES))), ends)


def _version(answer: bytes) -> Version:
    correlation_id, _, count = _HEAD.unpack_from(answer)
    if correlation_id != CORRELATION_ID:
        raise OSError("not an answer to this question")
    protocols = answer[_HEAD.size : _HEAD.size + count * _PROTOCOL.size]
    ranges = {key: (lowest, highest) for key, lowest, highest in _PROTOCOL.iter_unpack(protocols)}
    return tuple(infer_broker_version_from_api_versions(ranges))


def _has_port(address: str) -> bool:
    return address.rpartition(":")[2].isdigit() and not address.endswith("]")
