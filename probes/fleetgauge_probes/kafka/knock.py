"""A knock at one address: does Kafka answer there, and if not, what stands in the way?

Unlike a client it goes on to no other address, so that it can be said which one is silent.
"""

import socket
import struct
from collections.abc import Iterable
from enum import Enum
from functools import partial

from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

from fleetgauge_probes.in_time import in_time
from fleetgauge_probes.kafka.answer import API_VERSIONS_REQUEST, CORRELATION_ID

_DEFAULT_PORT = 9092
#: A knock takes a name, a connection and an answer; each may take a part of the whole.
_KNOCK_S = 2.5
_STEP_S = 1.0
_MAX_ANSWER_BYTES = 1 << 20
#: Correlation id, error code, how many protocols follow; then key, lowest and highest version of each.
_HEAD, _PROTOCOL = struct.Struct(">ihi"), struct.Struct(">hhh")


class Silence(Enum):
    """Why there was no answer."""

    NO_NAME = "no such name"
    REFUSED = "connection refused"
    TIMED_OUT = "no connection in time"
    NO_WAY = "no way there"
    MUTE = "takes connections, but does not answer"
    NOT_KAFKA = "does not speak Kafka's plain protocol"


Version = tuple[int, ...]
#: The Kafka version that the answer's protocols belong to, or why there was no answer.
Knock = Version | Silence


def addresses(bootstrap: str) -> tuple[str, ...]:
    """The HOST:PORT of a ``bootstrap.servers``."""
    named = (one.strip() for one in bootstrap.split(","))
    return tuple(one if _has_port(one) else f"{one}:{_DEFAULT_PORT}" for one in named)


def knock_at(where: Iterable[str]) -> dict[str, Knock]:
    """Knock at all of these HOST:PORT at once, for 2.5 s at most."""
    found: dict[str, Knock] = dict.fromkeys(where, Silence.TIMED_OUT)

    def note(address: str) -> None:
        found[address] = knock(address)

    in_time([partial(note, address) for address in found], _KNOCK_S)
    return dict(found)


def knock(address: str) -> Knock:
    """Connect, ask for the protocol versions, hang up."""
    host, _, port = address.rpartition(":")
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), _STEP_S)
    except (OSError, UnicodeError) as error:
        return _silence(error)
    with connection:
        return _ask(connection)


def _ask(connection: socket.socket) -> Knock:
    try:
        connection.sendall(API_VERSIONS_REQUEST)
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            return _version(answer.read(min(size, _MAX_ANSWER_BYTES)))
    except TimeoutError:
        return Silence.MUTE
    except (OSError, struct.error):
        return Silence.NOT_KAFKA


def _version(answer: bytes) -> Version:
    correlation_id, _, count = _HEAD.unpack_from(answer)
    if correlation_id != CORRELATION_ID:
        raise OSError("not an answer to this question")
    protocols = answer[_HEAD.size : _HEAD.size + count * _PROTOCOL.size]
    ranges = {key: (lowest, highest) for key, lowest, highest in _PROTOCOL.iter_unpack(protocols)}
    return tuple(infer_broker_version_from_api_versions(ranges))


def _silence(error: Exception) -> Silence:
    match error:
        # A name that cannot even be asked for, with an empty label for instance, is a UnicodeError.
        case socket.gaierror() | UnicodeError():
            return Silence.NO_NAME
        case ConnectionRefusedError():
            return Silence.REFUSED
        case TimeoutError():
            return Silence.TIMED_OUT
        case _:
            return Silence.NO_WAY


def _has_port(address: str) -> bool:
    return address.rpartition(":")[2].isdigit() and not address.endswith("]")
