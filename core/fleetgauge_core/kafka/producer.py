"""Producers of probes, of records, of spooled records and of tracers.

A producer must be renewed when its topic was recreated: librdkafka (as of 2.16) keeps the leader epochs of
the old topic and ignores metadata with lower ones, so it would go on sending to the old leaders.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings
from fleetgauge_core.kafka.errors import KafkaUnavailableError, error_code
from fleetgauge_core.kafka.own_resources import explain_creation_errors
from fleetgauge_core.kafka.renewal_times import RenewalTimes
from fleetgauge_core.kafka.throttle_event import report_throttling
from fleetgauge_core.runtime.uptime import uptime_ns

_log = logging.getLogger("fleetgauge.kafka")

#: The key of the topics in librdkafka's statistics. It follows the brokers, whose names contain no quotes.
_TOPICS_KEY = '"topics":'
#: Far below queue.buffering.max.messages, which is 100,000.
_MAX_QUEUED = 20_000
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
#: The reports of purged records come from the threads of their brokers.
_PURGE_TIMEOUT_S = 5
_FLUSH_S = 1
_POLL_S = 0.2
#: Pause before a client is created again whose secrets could not be read.
_RETRY_S = 2.0

#: Called with the uptime in ns and the failure's code; None means acknowledged.
_ProbeReport = Callable[[int, str | None], None]


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """The leader to which a producer sends a partition's records, and its epoch; None if unknown."""

    leader: int | None
    epoch: int | None


class _RenewableProducer:
    """A producer whose client is replaced when ``renew`` was called, by the thread that polls it."""

    def __init__(self, access: ClusterAccess, settings: dict[str, Any]) -> None:
        self._access = access
        self._settings = client_settings.CONNECTION | settings
        self._renewals = RenewalTimes()

    def start(self) -> None:
        """Create the client. Raises: KafkaUnavailableError if secrets cannot be read."""
        self._producer = self._create_client()

    def renew(self) -> None:
        """Replace the client soon, and once more later; until one can be created, the present one is used."""
        self._renewals.begin(time.monotonic())

    def _handlers(self) -> dict[str, Any]:
        return {}

    def _create_client(self) -> Producer:
        settings = self._settings | build_librdkafka_settings(self._access) | self._handlers()
        with explain_creation_errors(self._access):
            return Producer(settings)

    def _renew_if_due(self) -> None:
        if not self._renewals.is_due(time.monotonic()):
            return
        try:
            client = self._create_client()
        except KafkaUnavailableError as error:
            _log.warning("%s: records may not be delivered: %s", self._access.bootstrap, error)
            self._renewals.postpone(time.monotonic() + _RETRY_S)
        else:
            self._renewals.mark_done(time.monotonic())
            self._replace_client(client)

    def _replace_client(self, client: Producer) -> None:
        """Replace the client; what is not acknowledged is reported as purged."""
        previous, self._producer = self._producer, client
        _discard_queue(previous)


class _ThreadedProducer(_RenewableProducer):
    """A producer with a thread that handles delivery reports."""

    def __init__(self, access: ClusterAccess, settings: dict[str, Any], thread_name: str) -> None:
        super().__init__(access, settings)
        self._thread_name = thread_name
        self._lock = threading.Lock()
        """Held while a record is queued, so that none is queued in a client that was replaced."""
        self._stopping = threading.Event()

    def start(self) -> None:
        """Create the client. Raises: KafkaUnavailableError if secrets cannot be read."""
        super().start()
        with explain_creation_errors(self._access):
            self._thread = threading.Thread(target=self._run, name=self._thread_name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._renew_if_due()
            self._producer.poll(_POLL_S)


class ProbeProducer(_ThreadedProducer):
    """A producer of probes that reports each delivery from its own thread.

    ``on_throttled`` is called with a broker's ID and its quota throttle time in seconds.
    ``on_leaders`` is called every second with the uptime in ns and the leader by partition to which this
    producer sends: the evidence which broker gave an acknowledgement.
    """

    def __init__(
        self,
        access: ClusterAccess,
        topic: str,
        acks: str,
        on_throttled: Callable[[int, float], None],
        on_leaders: Callable[[int, Mapping[int, LeaderAndEpoch]], None] | None = None,
    ) -> None:
        settings = client_settings.PROBE_PRODUCER | {
            "acks": acks,
            "client.id": f"fleetgauge-probe-acks-{acks}",
        }
        super().__init__(access, settings, "probe-deliveries")
        self._topic = topic
        self._on_throttled = on_throttled
        self._on_leaders = on_leaders

    def _handlers(self) -> dict[str, Any]:
        handlers: dict[str, Any] = {"throttle_cb": partial(report_throttling, self._on_throttled)}
        return handlers | (
            {"stats_cb": self._report_leaders} if self._on_leaders else {"statistics.interval.ms": 0}
        )

    def _replace_client(self, client: Producer) -> None:
        """Replace the client; probes in flight are reported as purged."""
        with self._lock:
            previous, self._producer = self._producer, client
        # In a thread of its own, because acknowledgements of the new client are timed by this one.
        threading.Thread(target=_discard_queue, args=(previous,), name="purge", daemon=True).start()

    def send(self, partition: int, payload: bytes, report: _ProbeReport) -> None:
        """Queue a probe. A probe that cannot be queued is reported as failed; no exception is raised."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            report(uptime_ns(), error_code(error) if error else None)

        try:
            with self._lock:
                self._producer.produce(self._topic, payload, partition=partition, on_delivery=delivered)
        except BufferError:
            report(uptime_ns(), "QUEUE_FULL")
        except KafkaException as error:
            # For example, the producer's metadata does not contain a partition that was just created.
            report(uptime_ns(), error_code(error.args[0]))

    def stop(self) -> None:
        """Discard the probes in flight: nothing evaluates them once the agent has stopped."""
        self._stopping.set()
        self._thread.join()
        self._producer.purge()
        self._producer.poll(0)

    def _report_leaders(self, text: str) -> None:
        at_ns = uptime_ns()
        topic = _parse_topics(text).get(self._topic, {})
        leaders = {
            int(number): _parse_leader(partition)
            for number, partition in topic.get("partitions", {}).items()
            if int(number) >= 0
        }
        if leaders and self._on_leaders:
            self._on_leaders(at_ns, leaders)


def _discard_queue(producer: Producer) -> None:
    """Report every record that is not acknowledged as purged."""
    producer.purge()
    if left := producer.flush(_PURGE_TIMEOUT_S):
        _log.error("%d records of a replaced client are lost", left)


def _parse_topics(text: str) -> Mapping[str, Any]:
    """Return the topics in statistics; with hundreds of brokers, parsing all takes three times as long."""
    topics: Mapping[str, Any]
    topics, _ = json.JSONDecoder().raw_decode(text, text.index(_TOPICS_KEY) + len(_TOPICS_KEY))
    return topics


def _parse_leader(partition: Mapping[str, Any]) -> LeaderAndEpoch:
    leader, epoch = int(partition["leader"]), int(partition.get("leader_epoch", -1))
    return LeaderAndEpoch(leader if leader >= 0 else None, epoch if epoch >= 0 else None)


class RecordProducer(_ThreadedProducer):
    """An idempotent producer with acks=all: it delivers records in order, or discards them after a time-out.

    ``delivery_timeout_s`` is message.timeout.ms in seconds; None keeps records until the producer stops.
    ``delivered`` and ``failed`` count records. The first failure of each kind since the last delivery is
    logged. ``renew`` keeps the order; records in flight may arrive twice.
    """

    def __init__(self, access: ClusterAccess, client_id: str, delivery_timeout_s: int | None = 300) -> None:
        settings = client_settings.RECORD_PRODUCER | {
            "client.id": client_id,
            # A message.timeout.ms of 0 means no time-out.
            "message.timeout.ms": (delivery_timeout_s or 0) * 1000,
        }
        super().__init__(access, settings, "record-deliveries")
        self._client_id = client_id
        self._purged: list[Message] = []
        """Records of the client that is being replaced, in order."""
        self._logged_failures: frozenset[str] = frozenset()
        self.delivered = 0
        self.failed = 0

    def _replace_client(self, client: Producer) -> None:
        """Replace the client; what it has not delivered is sent again before all later records."""
        with self._lock:
            # Records of other topics need not be sent twice.
            self._producer.flush(_FLUSH_S)
            self._purged.clear()
            _discard_queue(self._producer)
            self._producer = client
            for message in self._purged:
                self._queue(message.topic() or "", message.key(), message.value())

    def send(self, topic: str, key: str, value: bytes) -> None:
        """Queue a record; it counts as failed if it cannot be queued, and no exception is raised.

        Hours of an unreachable cluster may have filled the queue; the topic may be gone, or not permitted.
        """
        with self._lock:
            self._queue(topic, key, value)

    def _queue(self, topic: str, key: str | bytes | None, value: bytes | None) -> None:
        try:
            self._producer.produce(topic, value, key=key, on_delivery=self._report)
        except BufferError:
            self._count_failure(topic, "QUEUE_FULL")
        except KafkaException as error:
            self._count_failure(topic, error_code(error.args[0]))

    def send_all(self, topic: str, records: Iterable[tuple[str, bytes]]) -> None:
        """Queue records, given as (key, value), and wait whenever the queue is full."""
        for key, value in records:
            while len(self._producer) >= _MAX_QUEUED:
                time.sleep(0.01)
            self.send(topic, key, value)

    def stop(self, timeout_s: float = 10) -> int:
        """Deliver the queued records within ``timeout_s``, then discard the rest.

        Returns: how many records were discarded; they count as failed.
        """
        self._stopping.set()
        self._thread.join()
        if undelivered := int(self._producer.flush(timeout_s)):
            self._producer.purge()
            self._producer.poll(0)
        return undelivered

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error and error.code() in _PURGED and not self._stopping.is_set():
            self._purged.append(message)
            return
        if error:
            self._count_failure(message.topic(), error_code(error))
            return
        self.delivered += 1
        if self._logged_failures:
            self._logged_failures = frozenset()
            _log.info("%s: %s: records are delivered again", self._client_id, message.topic())

    def _count_failure(self, topic: str | None, code: str) -> None:
        self.failed += 1
        if code not in self._logged_failures:
            self._logged_failures |= {code}
            _log.error("%s: %s: records are not delivered: %s", self._client_id, topic, code)


class _PolledProducer(_RenewableProducer):
    """A producer whose delivery reports arrive while it polls; all calls must come from one thread."""

    def poll(self, timeout_s: float) -> None:
        """Deliver reports; wait ``timeout_s`` at most for the first."""
        self._renew_if_due()
        self._producer.poll(timeout_s)

    def stop(self) -> None:
        """Discard what is not acknowledged; records in flight may still be written."""
        self._producer.purge()
        self._producer.poll(0)

    def _produce(self, report_failure: Callable[[str], None], **record: Any) -> None:
        """Queue a record; call ``report_failure`` with the failure's code if it cannot be queued."""
        try:
            self._producer.produce(**record)
        except BufferError:
            report_failure("QUEUE_FULL")
        except KafkaException as error:
            report_failure(error_code(error.args[0]))


class SpoolProducer(_PolledProducer):
    """A producer of records that stay in a spool until they are acknowledged."""

    def __init__(self, access: ClusterAccess, client_id: str) -> None:
        super().__init__(access, client_settings.SPOOL_PRODUCER | {"client.id": client_id})

    def send(self, topic: str, key: str, value: bytes, report: Callable[[str | None], None]) -> None:
        """Queue a record; a later ``poll`` calls ``report`` with the failure's code, None if acknowledged."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            report(error_code(error) if error else None)

        self._produce(report, topic=topic, value=value, key=key, on_delivery=delivered)


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """The result of a delivery: the record's offset and the latency in seconds, or the failure's code."""

    offset: int | None
    seconds: float
    failure: str | None = None


class TracerProducer(_PolledProducer):
    """An idempotent producer of tracers, which are empty records with headers.

    The latency of a delivery ends at the poll that reports it.
    """

    def __init__(self, access: ClusterAccess, topic: str, client_id: str) -> None:
        super().__init__(access, client_settings.TRACER_PRODUCER | {"client.id": client_id})
        self._topic = topic

    def send(self, headers: Mapping[str, bytes], report: Callable[[DeliveryReport], None]) -> None:
        """Queue a tracer; a later ``poll`` calls ``report`` with the result."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            report(
                DeliveryReport(
                    message.offset(), message.latency() or 0.0, error_code(error) if error else None
                )
            )

        self._produce(
            lambda failure: report(DeliveryReport(None, 0.0, failure)),
            topic=self._topic,
            value=b"",
            partition=0,
            headers=list(headers.items()),
            on_delivery=delivered,
        )
