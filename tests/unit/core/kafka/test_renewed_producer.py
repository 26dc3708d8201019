"""Producers whose client is replaced, on fake clients that acknowledge when they are told to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

import pytest
from confluent_kafka import KafkaError

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    KafkaUnavailableError,
    ProbeProducer,
    RecordProducer,
    producer,
    renewal_times,
)
from tests.waiting import wait_until

DEADLINE_S = 20
ACCESS = ClusterAccess("nowhere:9092")


@dataclass
class FakeMessage:
    """A queued record and the handler of its delivery report."""

    text: str
    report: Callable[[KafkaError | None, "FakeMessage"], None]

    def topic(self) -> str:
        return "records"

    def key(self) -> bytes:
        return b""

    def value(self) -> bytes:
        return self.text.encode()


@dataclass
class FakeClient:
    """A client that appends records to ``log`` while ``is_connected`` is set, and else keeps them."""

    log: list[str]
    is_connected: Event = field(default_factory=Event)
    queue: list[FakeMessage] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    is_purged: bool = False

    def produce(self, _: str, value: bytes, on_delivery: Any, **__: Any) -> None:
        assert not self.is_purged
        with self.lock:
            self.queue.append(FakeMessage(value.decode(), on_delivery))

    def poll(self, timeout_s: float) -> None:
        with self.lock:
            queued, self.queue = self.queue, []
        for number, message in enumerate(queued):
            if self.is_purged:
                message.report(KafkaError(KafkaError._PURGE_QUEUE), message)
            elif self.is_connected.wait(timeout_s):
                self.log.append(message.text)
                message.report(None, message)
            else:
                with self.lock:
                    self.queue = [*queued[number:], *self.queue]
                return

    def purge(self) -> None:
        self.is_purged = True

    def flush(self, timeout_s: float) -> int:
        self.poll(min(timeout_s, 0.01))
        return len(self)

    def __len__(self) -> int:
        return len(self.queue)


class Clients:
    """Creates clients, of which all but the first are connected; the next creations may fail."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.created: list[FakeClient] = []
        self.failures = 0

    def create(self, _: dict[str, Any]) -> FakeClient:
        if self.failures:
            self.failures -= 1
            raise KafkaUnavailableError("the secret cannot be read")
        client = FakeClient(self.log)
        if self.created:
            client.is_connected.set()
        self.created.append(client)
        return client


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    clients = Clients()
    monkeypatch.setattr(producer, "Producer", clients.create)
    monkeypatch.setattr(producer, "_POLL_S", 0.01)
    monkeypatch.setattr(producer, "_RETRY_S", 0.01)
    monkeypatch.setattr(renewal_times, "_AGAIN_AFTER_S", 0.05)
    return clients


@pytest.fixture
def records(clients: Clients) -> Iterator[RecordProducer]:
    records = RecordProducer(ACCESS, "tests")
    records.start()
    yield records
    records.stop(0)


def send(records: RecordProducer, *texts: str) -> None:
    for text in texts:
        records.send("records", "", text.encode())


def test_what_was_not_delivered_is_sent_again_before_all_later_records(
    clients: Clients, records: RecordProducer
) -> None:
    send(records, "1", "2", "3")
    records.renew()
    send(records, "4", "5")
    wait_until(lambda: records.delivered == 5, DEADLINE_S, "all records")
    assert clients.log == ["1", "2", "3", "4", "5"]
    assert records.failed == 0


def test_a_client_that_cannot_be_created_is_created_later(clients: Clients, records: RecordProducer) -> None:
    clients.failures = 3
    send(records, "1")
    records.renew()
    wait_until(lambda: clients.log == ["1"], DEADLINE_S, "the record")
    # The second renewal is for a client that connected to a broker which lags behind.
    wait_until(lambda: len(clients.created) == 3, DEADLINE_S, "the second renewal")


def test_after_its_stop_a_producer_is_not_renewed(clients: Clients) -> None:
    records = RecordProducer(ACCESS, "tests")
    records.start()
    send(records, "1")
    assert records.stop(0) == 1
    records.renew()
    assert (len(clients.created), records.failed) == (1, 1)


def test_probes_in_flight_are_reported_as_purged(clients: Clients) -> None:
    probes = ProbeProducer(ACCESS, "probes", "all", lambda *_: None)
    probes.start()
    codes: list[str | None] = []
    probes.send(0, b"1", lambda _, code: codes.append(code))
    clients.failures = 1
    probes.renew()
    wait_until(lambda: bool(codes), DEADLINE_S, "the report")
    probes.send(0, b"2", lambda _, code: codes.append(code))
    wait_until(lambda: len(codes) == 2, DEADLINE_S, "the acknowledgement")
    assert codes == ["PURGE_QUEUE", None]
    assert clients.log == ["2"]
    probes.stop()
