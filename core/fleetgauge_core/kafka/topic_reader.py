"""Readers of topics without a consumer group: partitions are assigned explicitly, no offset is committed."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from fleetgauge_core.contract.failure_codes import AgentFault, find_agent_fault
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings
from fleetgauge_core.kafka.errors import KafkaUnavailableError, error_code, translate_librdkafka_errors
from fleetgauge_core.kafka.own_resources import explain_creation_errors
from fleetgauge_core.kafka.throttle_event import report_throttling

_log = logging.getLogger("fleetgauge.kafka")

#: Pause before a consumer is created again whose secrets could not be read.
_RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A consumed record; ``at_ms`` is its timestamp in ms since 1970, 0 if it has none."""

    partition: int
    offset: int
    value: bytes
    key: bytes | None = None
    at_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


class TopicReader:
    """A consumer of explicitly assigned partitions of one topic."""

    def __init__(
        self,
        access: ClusterAccess,
        topic: str,
        client_id: str,
        on_error: Callable[[int, str], None] | None = None,
        on_throttled: Callable[[int, float], None] | None = None,
    ) -> None:
        """Prepare a reader.

        ``on_error`` is called with a partition that cannot be read and the error's code, once for as long as
        the error lasts; without it, the first error of each code since the last record is logged.
        ``on_throttled`` is called with a broker's ID and its quota throttle time in seconds.
        """
        self._access = access
        self._topic = topic
        self._on_error = on_error or self._log_error
        self._logged_errors: frozenset[str] = frozenset()
        self._settings: dict[str, Any] = (
            client_settings.CONNECTION | client_settings.PROBE_CONSUMER | {"client.id": client_id}
        )
        if on_throttled:
            self._settings["throttle_cb"] = partial(report_throttling, on_throttled)

    def start(self) -> None:
        """Create the consumer. Raises: KafkaUnavailableError if secrets cannot be read."""
        self._changes: deque[Callable[[], None]] = deque()
        """What the polling thread has to do with the consumer, in order."""
        self._retry_at_s = 0.0
        self._assigned: dict[int, TopicPartition] = {}
        self._consumer = self._create_consumer()

    def _create_consumer(self) -> Consumer:
        settings = self._settings | build_librdkafka_settings(self._access)
        with explain_creation_errors(self._access):
            return Consumer(settings)

    def assign(self, partitions: Iterable[int], from_beginning: bool = False) -> None:
        """Add partitions at the next poll; they are read from their end unless ``from_beginning``."""
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self.assign_from(dict.fromkeys(partitions, offset))

    def assign_from(self, offsets: Mapping[int, int]) -> None:
        """Read partitions from these offsets, from the next poll on, whether or not they were read before."""
        partitions = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        self._changes.append(partial(self._add_assignment, partitions))

    def renew(self) -> None:
        """Read with a new consumer, without partitions, from the next poll on.

        For a topic that was recreated: librdkafka (as of 2.16) keeps the leader epochs of the old topic and
        ignores metadata with lower ones, so it would never read from the new topic's leaders.
        """
        self._changes.append(self._replace_consumer)

    def drop_assignments(self) -> None:
        """Read no partition any more, from the next poll on."""
        self._changes.append(self._drop_assignments)

    def find_offsets_at(
        self, partitions: Iterable[int], at: datetime, timeout_s: float = 5
    ) -> dict[int, int]:
        """Return the offset of each partition's first record at that time or later; no entry without one.

        Raises: KafkaUnavailableError.
        """
        at_ms = int(at.timestamp() * 1000)
        timestamps = [TopicPartition(self._topic, partition, at_ms) for partition in partitions]
        with translate_librdkafka_errors(self._topic):
            results = self._consumer.offsets_for_times(timestamps, timeout_s)
        return {result.partition: result.offset for result in results if result.offset >= 0}

    def wait_for_partitions(self, timeout_s: float = 10) -> tuple[int, ...]:
        """Return the topic's partitions; wait for those of a topic that was just created.

        Raises: KafkaUnavailableError if it has none after ``timeout_s``.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            with translate_librdkafka_errors(self._topic):
                metadata = self._consumer.list_topics(self._topic, timeout_s).topics[self._topic]
            if metadata.partitions:
                return tuple(sorted(metadata.partitions))
            if time.monotonic() > deadline_s:
                # A topic without the DESCRIBE permission has an error code in place of partitions.
                reason = f": {metadata.error.name()}" if metadata.error else ""
                raise KafkaUnavailableError(
                    f"topic {self._topic} has no partitions after {timeout_s:g} s{reason}"
                )
            time.sleep(0.1)

    def poll(self, timeout_s: float) -> ConsumerRecord | None:
        """Return the next record, or None if none arrives in time or a partition cannot be read.

        Records are returned singly, because batching would add waits to the measured latency.
        """
        # Assigning in one thread while another polls blocks forever, so the polling thread assigns.
        self._apply_changes()
        deadline_s = time.monotonic() + timeout_s
        message: Message | None = self._consumer.poll(timeout_s)
        # An error that concerns no partition, such as one of the group, which is never joined, has no topic.
        while message is not None and message.error() is not None and not message.topic():
            message = self._consumer.poll(max(0.0, deadline_s - time.monotonic()))
        if message is None:
            return None
        if (error := message.error()) is not None:
            self._handle_error(message, error)
            return None
        if self._logged_errors:
            self._logged_errors = frozenset()
            _log.info("%s: records can be read again", self._topic)
        return _parse_record(message)

    def _handle_error(self, message: Message, error: KafkaError) -> None:
        """Report an error of a partition; the consumer goes on by itself."""
        self._on_error(message.partition() or 0, error_code(error))

    def _apply_changes(self) -> None:
        while self._changes and time.monotonic() >= self._retry_at_s:
            try:
                self._changes[0]()
            except KafkaUnavailableError as error:
                _log.warning("%s: records cannot be read: %s", self._topic, error)
                self._retry_at_s = time.monotonic() + _RETRY_S
            else:
                self._changes.popleft()

    def _replace_consumer(self) -> None:
        previous, self._consumer = self._consumer, self._create_consumer()
        self._forget_assignments()
        previous.close()

    def _drop_assignments(self) -> None:
        if self._assigned:
            self._consumer.incremental_unassign(list(self._assigned.values()))
        self._forget_assignments()

    def _forget_assignments(self) -> None:
        self._assigned.clear()

    def _add_assignment(self, partitions: list[TopicPartition]) -> None:
        replaced = [
            self._assigned[partition.partition]
            for partition in partitions
            if partition.partition in self._assigned
        ]
        if replaced:
            self._consumer.incremental_unassign(replaced)
            for partition in replaced:
                del self._assigned[partition.partition]
        self._consumer.incremental_assign(partitions)
        self._assigned |= {partition.partition: partition for partition in partitions}

    def _log_error(self, _: int, code: str) -> None:
        if code not in self._logged_errors:
            self._logged_errors |= {code}
            fault = find_agent_fault(code)
            reason = "" if fault is not AgentFault.RIGHTS else ": this process lacks the READ permission"
            _log.error("%s: records cannot be read: %s%s", self._topic, code, reason)

    def read_until(self, ends: Mapping[int, int], timeout_s: float) -> Iterator[ConsumerRecord]:
        """Yield the records before each partition's end offset.

        Raises: KafkaUnavailableError if no record arrives for ``timeout_s``.
        """
        unfinished = {partition for partition, end in ends.items() if end > 0}
        while unfinished:
            record = self.poll(timeout_s)
            if record is None:
                problem = ", ".join(sorted(self._logged_errors)) or f"no record within {timeout_s:g} s"
                raise KafkaUnavailableError(f"{self._topic}: {problem}")
            if record.offset + 1 >= ends.get(record.partition, 0):
                unfinished.discard(record.partition)
            yield record

    def read_end_offsets(self, partitions: Iterable[int], timeout_s: float = 5) -> dict[int, int]:
        """Return each partition's end offset; 0 for an empty partition. Raises: KafkaUnavailableError."""
        bounds = self.read_offset_bounds(partitions, timeout_s)
        return {partition: end if end > start else 0 for partition, (start, end) in bounds.items()}

    def read_offset_bounds(
        self, partitions: Iterable[int], timeout_s: float = 5
    ) -> dict[int, tuple[int, int]]:
        """Return each partition's start and end offset; they are equal if it is empty.

        Raises: KafkaUnavailableError.
        """
        with translate_librdkafka_errors(self._topic):
            return {
                partition: self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, partition), timeout_s
                )
                for partition in partitions
            }

    def stop(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def read_record_range(
    access: ClusterAccess, topic: str, partition: int, offsets: range, client_id: str, timeout_s: float = 10
) -> Iterator[ConsumerRecord]:
    """Yield the records with these offsets, up to the partition's end.

    Transaction markers take offsets too, so there may be fewer records than offsets.

    Raises: KafkaUnavailableError for an error, or if no record arrives for ``timeout_s``.
    """
    if not offsets:
        return
    settings = (
        client_settings.CONNECTION
        | client_settings.PROBE_CONSUMER
        | {"enable.partition.eof": True, "auto.offset.reset": "error", "client.id": client_id}
    )
    settings |= build_librdkafka_settings(access)
    with explain_creation_errors(access):
        consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, partition, offsets.start)])
        next_offset = offsets.start
        while next_offset < offsets.stop:
            message = consumer.poll(timeout_s)
            if message is None:
                raise KafkaUnavailableError(f"{topic}/{partition}: no record within {timeout_s:g} s")
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return
            if error is not None:
                raise KafkaUnavailableError(f"{topic}/{partition}: {error.str()}")
            next_offset = (message.offset() or 0) + 1
            if next_offset <= offsets.stop:
                yield _parse_record(message)
    finally:
        consumer.close()


def _parse_record(message: Message) -> ConsumerRecord:
    return ConsumerRecord(
        message.partition() or 0,
        message.offset() or 0,
        message.value() or b"",
        message.key(),
        max(message.timestamp()[1], 0),
        _headers(message),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    # The headers of a consumed message are a list with bytes; the declared type also covers produced ones.
    return tuple(cast("list[tuple[str, bytes | None]]", message.headers() or ()))


def read_topic_values(
    access: ClusterAccess, topic: str, client_id: str, since: datetime | None = None, timeout_s: float = 10
) -> Iterator[bytes]:
    """Yield the values from the start, or from the time ``since``, to the present end of a topic.

    The values of one partition keep their order.

    Raises: KafkaUnavailableError, also if no record arrives for ``timeout_s`` before the end.
    """
    reader = TopicReader(access, topic, client_id)
    reader.start()
    try:
        partitions = reader.wait_for_partitions(timeout_s)
        ends = reader.read_end_offsets(partitions, timeout_s)
        if since:
            starts = reader.find_offsets_at(partitions, since, timeout_s)
            ends = {partition: end for partition, end in ends.items() if starts.get(partition, end) < end}
            reader.assign_from({partition: starts[partition] for partition in ends})
        else:
            reader.assign(partitions, from_beginning=True)
        for record in reader.read_until(ends, timeout_s):
            yield record.value
    finally:
        reader.stop()
