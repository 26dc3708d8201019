"""Readers of whole topics: partitions by hand, no consumer group, nothing committed."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka
from fleetgauge_core.kafka.errors import KafkaUnavailableError


@dataclass(frozen=True, slots=True)
class Record:
    """One consumed record."""

    partition: int
    offset: int
    value: bytes
    key: bytes | None = None
    at_ms: int = 0
    """Its timestamp, since 1970; 0 where it has none."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class TopicReader:
    """Reads given partitions of a topic, from their end unless told otherwise."""

    def __init__(self, access: Access, topic: str, client_id: str) -> None:
        self._access = access
        self._topic = topic
        self._settings = (
            client_settings.CONNECTION | client_settings.PROBE_CONSUMER | {"client.id": client_id}
        )

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._wanted: SimpleQueue[list[TopicPartition]] = SimpleQueue()
        self._consumer = Consumer(self._settings | for_librdkafka(self._access))

    def add(self, partitions: Iterable[int], from_beginning: bool = False) -> None:
        """Read these partitions too, from the next poll on."""
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self.add_from(dict.fromkeys(partitions, offset))

    def add_from(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions too, each from its offset, from the next poll on."""
        self._wanted.put([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])

    def offsets_at(self, partitions: Iterable[int], at: datetime, timeout_s: float = 5) -> dict[int, int]:
        """Partition to its first record of that time or later, as far as there is one."""
        at_ms = int(at.timestamp() * 1000)
        wanted = [TopicPartition(self._topic, p, at_ms) for p in partitions]
        try:
            found = self._consumer.offsets_for_times(wanted, timeout_s)
        except KafkaException as error:
            raise KafkaUnavailableError(f"{self._topic}: {error.args[0].str()}") from error
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def partitions(self, timeout_s: float = 10) -> tuple[int, ...]:
        """The topic's partitions, waited for if it was made just now. Raises KafkaUnavailableError."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                found = self._consumer.list_topics(self._topic, timeout_s).topics[self._topic]
            except KafkaException as error:
                raise KafkaUnavailableError(f"{self._topic}: {error.args[0].str()}") from error
            if found.partitions:
                return tuple(sorted(found.partitions))
            if time.monotonic() > deadline:
                raise KafkaUnavailableError(f"topic {self._topic} has no partitions after {timeout_s:g} s")
            time.sleep(0.1)

    def poll(self, timeout_s: float) -> Record | None:
        """The next record, or None. One at a time: batching would add waits that are not Kafka's."""
        # Assigning from one thread while another polls never returns, so the polling thread does it.
        while not self._wanted.empty():
            self._consumer.incremental_assign(self._wanted.get())
        message: Message | None = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return None
        return _record(message)

    def until(self, ends: Mapping[int, int], timeout_s: float) -> Iterator[Record]:
        """What lies before the given end offsets. Raises KafkaUnavailableError after a silent timeout."""
        left = {partition for partition, end in ends.items() if end > 0}
        while left:
            record = self.poll(timeout_s)
            if record is None:
                raise KafkaUnavailableError(f"{self._topic}: no record within {timeout_s:g} s")
            if record.offset + 1 >= ends.get(record.partition, 0):
                left.discard(record.partition)
            yield record

    def ends(self, partitions: Iterable[int], timeout_s: float = 5) -> dict[int, int]:
        """Partition to the offset after its last record; 0 for an empty partition."""
        bounds = self.bounds(partitions, timeout_s)
        return {p: high if high > low else 0 for p, (low, high) in bounds.items()}

    def bounds(self, partitions: Iterable[int], timeout_s: float = 5) -> dict[int, tuple[int, int]]:
        """Partition to its first offset and the one after its last record; equal where it is empty."""
        try:
            return {
                p: self._consumer.get_watermark_offsets(TopicPartition(self._topic, p), timeout_s)
                for p in partitions
            }
        except KafkaException as error:
            raise KafkaUnavailableError(f"{self._topic}: {error.args[0].str()}") from error

    def stop(self) -> None:
        self._consumer.close()


def records_between(
    access: Access, topic: str, partition: int, span: range, client_id: str, timeout_s: float = 10
) -> Iterator[Record]:
    """Those with offsets of the span, up to where the partition ends.

    Raises KafkaUnavailableError after so long a silence, and for whatever else is not the end: the marker of
    a transaction takes an offset and is no record, so how many there are nobody knows before.
    """
    if not span:
        return
    whole = {"enable.partition.eof": True, "auto.offset.reset": "error", "client.id": client_id}
    settings = client_settings.CONNECTION | client_settings.PROBE_CONSUMER | whole
    consumer = Consumer(settings | for_librdkafka(access))
    try:
        consumer.assign([TopicPartition(topic, partition, span.start)])
        offset = span.start
        while offset < span.stop:
            message = consumer.poll(timeout_s)
            if message is None:
                raise KafkaUnavailableError(f"{topic}/{partition}: no record within {timeout_s:g} s")
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return
            if error is not None:
                raise KafkaUnavailableError(f"{topic}/{partition}: {error.str()}")
            offset = (message.offset() or 0) + 1
            if offset <= span.stop:
                yield _record(message)
    finally:
        consumer.close()


def _record(message: Message) -> Record:
    return Record(
        message.partition() or 0,
        message.offset() or 0,
        message.value() or b"",
        message.key(),
        max(message.timestamp()[1], 0),
        _headers(message),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    # What was consumed has them as a list of bytes; a message that is to be sent may have more.
    return tuple(cast("list[tuple[str, bytes | None]]", message.headers() or ()))


def values_now(
    access: Access, topic: str, client_id: str, since: datetime | None = None, timeout_s: float = 10
) -> Iterator[bytes]:
    """What is on the topic now, or since then, a partition's values in their order.

    Raises KafkaUnavailableError, also after so long a silence in the middle of it.
    """
    reader = TopicReader(access, topic, client_id)
    reader.start()
    try:
        partitions = reader.partitions(timeout_s)
        ends = reader.ends(partitions, timeout_s)
        if since:
            starts = reader.offsets_at(partitions, since, timeout_s)
            ends = {p: end for p, end in ends.items() if starts.get(p, end) < end}
            reader.add_from({p: starts[p] for p in ends})
        else:
            reader.add(partitions, from_beginning=True)
        for record in reader.until(ends, timeout_s):
            yield record.value
    finally:
        reader.stop()
