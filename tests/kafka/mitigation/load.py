"""Producers and consumers of a cluster under mitigation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer

from fleetgauge_core.runtime.shutdown import ShutdownFlag
from tests.kafka.mitigation.testbed import DEADLINE_S, running_thread
from tests.waiting import wait_until

PARTITIONS = 12


@dataclass
class Load:
    """An idempotent producer with acks=all and a consumer that run all the time."""

    bootstrap: str
    topic: str
    size: int = 100
    acknowledged: int = 0
    received: int = 0
    errors: list[str] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Run until the block is left, then until every acknowledged record is consumed."""
        with running_thread(self._consume), running_thread(self._produce):
            wait_until(lambda: self.received > 0, DEADLINE_S, "the load")
            yield self

    def _produce(self, shutdown: ShutdownFlag) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0})

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                self.errors.append(error.str())
            else:
                self.acknowledged += 1

        number = 0
        while not shutdown.wait(0.005):
            producer.produce(
                self.topic, bytes(self.size), partition=number % PARTITIONS, on_delivery=delivered
            )
            producer.poll(0)
            number += 1
        assert producer.flush(DEADLINE_S) == 0

    def _consume(self, shutdown: ShutdownFlag) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self.topic])
        deadline_s = float("inf")
        while time.monotonic() < deadline_s and not (
            shutdown.is_set() and self.received >= self.acknowledged
        ):
            message = consumer.poll(1)
            if shutdown.is_set():
                deadline_s = min(deadline_s, time.monotonic() + DEADLINE_S)
            if message is None:
                continue
            if error := message.error():
                self.errors.append(error.str())
            else:
                self.received += 1
        consumer.close()
