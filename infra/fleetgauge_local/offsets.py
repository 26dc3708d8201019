"""Where a group goes on in a topic, asked for and set without a client.

Librdkafka's aborts the whole process when a group's coordinator that hung answers after all
(confluentinc/librdkafka#5397): whoever is to outlive that has to ask by hand.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence

from fleetgauge_local.wire import array, ask, text

Address = tuple[str, int]

_ANSWER_S = 2.0
# Kafka's numbers for requests, and the versions of them that need no tagged fields.
_OFFSET_COMMIT, _OFFSET_FETCH, _FIND_COORDINATOR = (8, 5), (9, 2), (10, 0)


def addresses(bootstrap: str) -> tuple[Address, ...]:
    """Those of a ``bootstrap.servers`` in which every port is said."""
    pairs = (one.strip().rpartition(":") for one in bootstrap.split(","))
    return tuple((host, int(port)) for host, _, port in pairs)


def committed(
    brokers: Sequence[Address], group: str, topic: str, partitions: Collection[int]
) -> dict[int, int]:
    """By partition, where the group goes on, of those for which it has committed. Raises OSError."""
    asked = array(*(struct.pack(">i", one) for one in partitions))
    answer = _ask_coordinator(brokers, group, _OFFSET_FETCH, text(group) + array(text(topic) + asked))
    _refuse(group, {error for _, _, error in _fetched(answer)} | {_last_error(answer)})
    return {partition: offset for partition, offset, _ in _fetched(answer) if offset >= 0}


def commit(brokers: Sequence[Address], group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """For a group in which nobody is; by partition, what it reads next. Raises OSError."""
    no_metadata = text("")
    wanted = array(*(struct.pack(">iq", *one) + no_metadata for one in offsets.items()))
    no_generation, no_member = struct.pack(">i", -1), text("")
    question = text(group) + no_generation + no_member + array(text(topic) + wanted)
    answer = _ask_coordinator(brokers, group, _OFFSET_COMMIT, question)
    # One topic: its partitions, each with its error, end the answer.
    each = struct.Struct(">ih")
    _refuse(group, {error for _, error in each.iter_unpack(answer[-each.size * len(offsets) :])})


def _ask_coordinator(brokers: Sequence[Address], group: str, api: tuple[int, int], question: bytes) -> bytes:
    return ask(_coordinator(brokers, group), *api, question, _ANSWER_S)


def _coordinator(brokers: Sequence[Address], group: str) -> Address:
    """As the first broker says that says anything; whoever is asked first makes the topic of offsets."""
    failure = OSError("there is no broker to ask")
    for broker in brokers:
        try:
            answer = ask(broker, *_FIND_COORDINATOR, text(group), _ANSWER_S)
        except OSError as error:
            failure = error
            continue
        error_code, _, length = struct.unpack_from(">hih", answer)
        _refuse(group, {error_code})
        (port,) = struct.unpack_from(">i", answer, 8 + length)
        return answer[8 : 8 + length].decode(), port
    raise failure


def _fetched(answer: bytes) -> Iterator[tuple[int, int, int]]:
    """Of the one topic that was asked for: partition, offset (-1: none) and error."""
    (name_length,) = struct.unpack_from(">h", answer, 4)
    at = 6 + name_length
    (count,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(count):
        partition, offset, metadata_length = struct.unpack_from(">iqh", answer, at)
        at += 14 + max(0, metadata_length)
        (error,) = struct.unpack_from(">h", answer, at)
        at += 2
        yield partition, offset, error


def _last_error(answer: bytes) -> int:
    (error,) = struct.unpack(">h", answer[-2:])
    return int(error)


def _refuse(group: str, errors: Collection[int]) -> None:
    for error in errors:
        if error:
            raise OSError(f"the coordinator of {group} answers with Kafka's error {error}")
