"""Tracers sent into every source, and seen wherever mirrors bring them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread

from fleetgauge_core.fleet import Access, Fleet, Tracers
from fleetgauge_core.kafka import (
    Admin,
    Delivery,
    KafkaUnavailableError,
    TopicReader,
    TopicSpec,
    TracerProducer,
)
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.tracers.plan.delays import (
    Acks,
    Delay,
    Delays,
    Pairing,
    Way,
)
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

_log = logging.getLogger("fleetgauge.recover")

#: Of their topic, which has no other.
PARTITION = 0
_POLL_S = 0.5
_AGAIN_S = 5.0
_RETENTION_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Told:
    """What tracers told since they were asked last."""

    delays: Mapping[Way, Delay]
    acks: Mapping[str, Acks]
    pairings: tuple[Pairing, ...]

    def then(self, later: "Told") -> "Told":
        """Both stretches together; of pairings the later ones say more."""
        delays = {way: self.delays.get(way, Delay()).then(one) for way, one in later.delays.items()}
        acks = {cluster: self.acks.get(cluster, Acks()).then(one) for cluster, one in later.acks.items()}
        return Told(delays, acks, later.pairings or self.pairings)


NOTHING_TOLD = Told({}, {}, ())


class Tracing:
    """From ``start`` to ``stop``, a thread for each cluster that is written to and each topic that is read.

    A cluster that is dead delays no other.
    """

    def __init__(self, fleet: Fleet, tracers: Tracers, run: str, now_ms: Callable[[], int]) -> None:
        self._fleet = fleet
        self._tracers = tracers
        self._run = run
        self._now_ms = now_ms
        mirrors = [one for one in fleet.recovery.mirrors if one.takes(tracers.topic)]
        self._delays = Delays(run, [Way(one.source, one.destination) for one in mirrors])
        self._homes = sorted({one.source for one in mirrors})
        self._read = {(home, tracers.topic) for home in self._homes}
        self._read |= {(one.destination, one.called_there(tracers.topic)) for one in mirrors}
        self._lock = Lock()
        self._stopping = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        sending = [partial(self._send, home) for home in self._homes]
        reading = [partial(self._watch, *place) for place in sorted(self._read)]
        self._threads = [Thread(target=one, name="tracers", daemon=True) for one in (*sending, *reading)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def told(self) -> Told:
        with self._lock:
            return Told(self._delays.delays(self._now_ms()), self._delays.acks(), self._delays.pairings())

    def _send(self, home: str) -> None:
        access = self._fleet.cluster(home).access
        producer = TracerProducer(access, self._tracers.topic, f"{CLIENT_ID}-tracers")
        if not self._until_done(lambda: self._make_ready(access, producer), f"no tracers into {home}"):
            return
        sequence = 0
        while not self._stopping.is_set():
            tracer = Tracer(
                home, self._tracers.topic, PARTITION, self._run, sequence := sequence + 1, self._now_ms()
            )
            with self._lock:
                self._delays.sent(tracer)
            producer.send(tracer.headers, partial(self._delivered, tracer))
            due_ms = tracer.produced_ms + round(1000 * self._tracers.every_s)
            while self._now_ms() < due_ms and not self._stopping.is_set():
                producer.poll(_POLL_S)
        producer.stop()

    def _make_ready(self, access: Access, producer: TracerProducer) -> None:
        admin = Admin(access, timeout_s=10)
        admin.start()
        if admin.topic(self._tracers.topic) is None:
            settings = {"retention.ms": str(_RETENTION_MS)}
            admin.create(TopicSpec(self._tracers.topic, settings, 1, min(3, len(admin.brokers()))))
        producer.start()

    def _delivered(self, tracer: Tracer, delivery: Delivery) -> None:
        if delivery.offset is not None and not delivery.failure:
            with self._lock:
                self._delays.acknowledged(tracer, delivery.offset, round(1000 * delivery.seconds))

    def _watch(self, cluster: str, topic: str) -> None:
        reader = TopicReader(self._fleet.cluster(cluster).access, topic, CLIENT_ID)
        if not self._until_done(reader.start, f"{topic} of {cluster}"):
            return
        try:
            if self._until_done(lambda: reader.add(reader.partitions()), f"{topic} of {cluster}"):
                while not self._stopping.is_set():
                    self._take(cluster, reader)
        finally:
            reader.stop()

    def _take(self, cluster: str, reader: TopicReader) -> None:
        record = reader.poll(_POLL_S)
        tracer = Tracer.of(record.headers) if record else None
        if record and tracer:
            with self._lock:
                self._delays.seen(tracer, cluster, record.offset, self._now_ms())

    def _until_done(self, attempt: Callable[[], None], what: str) -> bool:
        """Again and again; whether it was done before the end."""
        while not self._stopping.is_set():
            try:
                attempt()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", what, error)
                self._stopping.wait(_AGAIN_S)
            else:
                return True
        return False
