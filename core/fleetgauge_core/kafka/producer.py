"""Producers: one that probes, one that delivers records, one that empties a spool."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, ThrottleEvent

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka
from fleetgauge_core.kafka.errors import code
from fleetgauge_core.runtime.uptime import uptime_ns

#: Before the topics in librdkafka's statistics, which come after the brokers; no broker's name has quotes.
_OF_TOPICS = '"topics":'
#: Far below librdkafka's own limit of 100,000 messages.
_MOST_WAITING = 20_000

#: Called with the uptime in ns and the failure's code, None for an acknowledgement.
Report = Callable[[int, str | None], None]


@dataclass(frozen=True, slots=True)
class Route:
    """Whom a producer sends a partition's records to; None where it does not know."""

    leader: int | None
    epoch: int | None


class ProbeProducer:
    """Sends probes and reports each one's fate from a thread of its own.

    ``on_throttled`` is told which broker holds it back for a quota, and for how many seconds.
    ``on_routes`` receives, every second, the leader of each partition as this
    very producer routes to it: the evidence for who gave an acknowledgement.
    """

    def __init__(
        self,
        access: Access,
        topic: str,
        acks: str,
        on_throttled: Callable[[int, float], None],
        on_routes: Callable[[int, Mapping[int, Route]], None] | None = None,
    ) -> None:
        self._access = access
        self._topic = topic
        self._on_throttled = on_throttled
        self._on_routes = on_routes
        self._settings = (
            client_settings.CONNECTION
            | client_settings.PROBE_PRODUCER
            | {"acks": acks, "client.id": f"fleetgauge-probe-acks-{acks}"}
        )
        self._stopping = threading.Event()

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        handlers: dict[str, Any] = {"throttle_cb": self._throttled}
        handlers |= {"stats_cb": self._statistics} if self._on_routes else {"statistics.interval.ms": 0}
        self._producer = Producer(self._settings | for_librdkafka(self._access) | handlers)
        self._thread = threading.Thread(target=self._poll, name="probe-deliveries", daemon=True)
        self._thread.start()

    def send(self, partition: int, payload: bytes, report: Report) -> None:
        """Hand one probe over; one that is not taken is a failed delivery, not an exception."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            report(uptime_ns(), code(error) if error else None)

        try:
            self._producer.produce(self._topic, payload, partition=partition, on_delivery=delivered)
        except BufferError:
            report(uptime_ns(), "QUEUE_FULL")
        except KafkaException as error:
            # A partition that was made just now, for one, is not known to this producer yet.
            report(uptime_ns(), code(error.args[0]))

    def stop(self) -> None:
        """Give up what is in flight; a probe is worth nothing after its agent."""
        self._stopping.set()
        self._thread.join()
        self._producer.purge()
        self._producer.poll(0)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(0.2)

    def _throttled(self, event: ThrottleEvent) -> None:
        # librdkafka tells of every answer that follows a throttled one as well, with a time of 0.
        if event.throttle_time > 0:
            self._on_throttled(event.broker_id, event.throttle_time)

    def _statistics(self, text: str) -> None:
        at_ns = uptime_ns()
        topic = _topics(text).get(self._topic, {})
        routes = {int(p): _route(facts) for p, facts in topic.get("partitions", {}).items() if int(p) >= 0}
        if routes and self._on_routes:
            self._on_routes(at_ns, routes)


def _topics(text: str) -> Mapping[str, Any]:
    """What statistics say of topics; with hundreds of brokers all of it takes three times as long to read."""
    found: Mapping[str, Any]
    found, _ = json.JSONDecoder().raw_decode(text, text.index(_OF_TOPICS) + len(_OF_TOPICS))
    return found


def _route(facts: Mapping[str, Any]) -> Route:
    leader, epoch = int(facts["leader"]), int(facts.get("leader_epoch", -1))
    return Route(leader if leader >= 0 else None, epoch if epoch >= 0 else None)


class RecordProducer:
    """Delivers records at least once and in order (acks=all, idempotent), or gives them up after a while.

    ``give_up_after_s``: None to hold them for as long as this runs.
    """

    def __init__(self, access: Access, client_id: str, give_up_after_s: int | None = 300) -> None:
        self._access = access
        self._settings = (
            client_settings.CONNECTION
            | client_settings.RECORD_PRODUCER
            # 0 is for ever there.
            | {"client.id": client_id, "message.timeout.ms": (give_up_after_s or 0) * 1000}
        )
        self._stopping = threading.Event()
        self.delivered = 0
        self.failed = 0

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._producer = Producer(self._settings | for_librdkafka(self._access))
        self._thread = threading.Thread(target=self._poll, name="record-deliveries", daemon=True)
        self._thread.start()

    def send(self, topic: str, key: str, value: bytes) -> None:
        """Queue one record; a full queue (hours of an unreachable cluster) counts as failed."""
        try:
            self._producer.produce(topic, value, key=key, on_delivery=self._report)
        except BufferError:
            self.failed += 1

    def send_all(self, topic: str, records: Iterable[tuple[str, bytes]]) -> None:
        """Queue keys with their values as fast as they are delivered: a full queue is waited for."""
        for key, value in records:
            while len(self._producer) >= _MOST_WAITING:
                time.sleep(0.01)
            self.send(topic, key, value)

    def stop(self, timeout_s: float = 10) -> int:
        """Deliver what waits, at most so long; returns how many records did not get out, nor will later.

        They count as failed.
        """
        self._stopping.set()
        self._thread.join()
        if left := int(self._producer.flush(timeout_s)):
            self._producer.purge()
            self._producer.poll(0)
        return left

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(0.2)

    def _report(self, error: KafkaError | None, _: Message) -> None:
        if error:
            self.failed += 1
        else:
            self.delivered += 1


class SpoolProducer:
    """Sends what waits elsewhere until it is acknowledged. For one thread, which polls it for the reports."""

    def __init__(self, access: Access, client_id: str) -> None:
        self._access = access
        self._settings = (
            client_settings.CONNECTION | client_settings.SPOOL_PRODUCER | {"client.id": client_id}
        )

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._producer = Producer(self._settings | for_librdkafka(self._access))

    def send(self, topic: str, key: str, value: bytes, report: Callable[[str | None], None]) -> None:
        """``report`` gets the failure's code, None for an acknowledgement, while this is polled."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            report(code(error) if error else None)

        try:
            self._producer.produce(topic, value, key=key, on_delivery=delivered)
        except BufferError:
            report("QUEUE_FULL")
        except KafkaException as error:
            report(code(error.args[0]))

    def poll(self, timeout_s: float) -> None:
        """Wait that long at most for a report."""
        self._producer.poll(timeout_s)

    def stop(self) -> None:
        """Let go of what is not acknowledged; what was on its way may still arrive."""
        self._producer.purge()
        self._producer.poll(0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a record: where it lies and how long that took, or the failure's code."""

    offset: int | None
    seconds: float
    failure: str | None = None


class TracerProducer:
    """Sends empty records with headers, each written once or not at all. For one thread, which polls it.

    How long a delivery took is measured when it is polled.
    """

    def __init__(self, access: Access, topic: str, client_id: str) -> None:
        self._access = access
        self._topic = topic
        self._settings = (
            client_settings.CONNECTION | client_settings.TRACER_PRODUCER | {"client.id": client_id}
        )

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._producer = Producer(self._settings | for_librdkafka(self._access))

    def send(self, headers: Mapping[str, bytes], report: Callable[[Delivery], None]) -> None:
        """``report`` is called while this is polled."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            report(Delivery(message.offset(), message.latency() or 0.0, code(error) if error else None))

        try:
            self._producer.produce(
                self._topic, b"", partition=0, headers=list(headers.items()), on_delivery=delivered
            )
        except BufferError:
            report(Delivery(None, 0.0, "QUEUE_FULL"))
        except KafkaException as error:
            report(Delivery(None, 0.0, code(error.args[0])))

    def poll(self, timeout_s: float) -> None:
        """Wait that long at most for a report."""
        self._producer.poll(timeout_s)

    def stop(self) -> None:
        """Let go of what is not acknowledged."""
        self._producer.purge()
        self._producer.poll(0)
