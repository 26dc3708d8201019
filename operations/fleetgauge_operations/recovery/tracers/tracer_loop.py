"""Send tracers to every source cluster and read them wherever mirrors replicate them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread

from fleetgauge_core.fleet import Fleet, Tracers
from fleetgauge_core.kafka import (
    DeliveryReport,
    FollowedReader,
    KafkaUnavailableError,
    ReportTopicChange,
    TopicKeeper,
    TracerProducer,
    build_log_topic_spec,
    follow_topics,
    log_topic_change,
)
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.tracers.plan.delays import (
    MirrorDelay,
    MirrorRoute,
    TracerAcks,
    TracerDelays,
    TracerMapping,
)
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

_log = logging.getLogger("fleetgauge.recover")

#: The tracers' topic has this partition only.
PARTITION = 0
_POLL_S = 0.5
_RETRY_AFTER_S = 5.0
_RETENTION_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class TracerReport:
    """The delays, acknowledgements and offsets of tracers in one interval."""

    delays: Mapping[MirrorRoute, MirrorDelay]
    acks: Mapping[str, TracerAcks]
    mappings: tuple[TracerMapping, ...]

    def merge(self, later: "TracerReport") -> "TracerReport":
        """Combine this interval with a later one, whose mappings replace this one's if it has any."""
        delays = {
            route: self.delays.get(route, MirrorDelay()).merge(delay) for route, delay in later.delays.items()
        }
        acks = {
            cluster: self.acks.get(cluster, TracerAcks()).merge(later_acks)
            for cluster, later_acks in later.acks.items()
        }
        return TracerReport(delays, acks, later.mappings or self.mappings)


EMPTY_TRACER_REPORT = TracerReport({}, {}, ())


class TracerLoop:
    """Sends and reads tracers from ``start`` to ``stop``.

    Each source cluster has a thread that sends to it, and each replica of the topic a thread that reads it,
    so that an unreachable cluster does not delay the others.
    """

    def __init__(
        self,
        fleet: Fleet,
        tracers: Tracers,
        run: str,
        now_ms: Callable[[], int],
        report_topic_change: ReportTopicChange = log_topic_change,
    ) -> None:
        self._fleet = fleet
        self._tracers = tracers
        self._run = run
        self._now_ms = now_ms
        self._report_topic_change = report_topic_change
        mirrors = [mirror for mirror in fleet.recovery.mirrors if mirror.replicates(tracers.topic)]
        self._delays = TracerDelays(
            run, [MirrorRoute(mirror.source, mirror.destination) for mirror in mirrors]
        )
        self._sources = sorted({mirror.source for mirror in mirrors})
        self._topics_to_read = {(source, tracers.topic) for source in self._sources}
        self._topics_to_read |= {
            (mirror.destination, mirror.destination_topic(tracers.topic)) for mirror in mirrors
        }
        self._lock = Lock()
        self._stopping = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Start all threads."""
        senders = [partial(self._send_until_stopped, source) for source in self._sources]
        readers = [
            partial(self._read_until_stopped, cluster, topic)
            for cluster, topic in sorted(self._topics_to_read)
        ]
        self._threads = [Thread(target=work, name="tracers", daemon=True) for work in (*senders, *readers)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop all threads and wait for their end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def take_report(self) -> TracerReport:
        """Return what the tracers showed since the previous call."""
        with self._lock:
            return TracerReport(
                self._delays.take_delays(self._now_ms()),
                self._delays.take_acks(),
                self._delays.take_mappings(),
            )

    def _send_until_stopped(self, source: str) -> None:
        access = self._fleet.cluster(source).access
        producer = TracerProducer(access, self._tracers.topic, f"{CLIENT_ID}-tracers")
        keeper = TopicKeeper(
            access, lambda brokers: (build_log_topic_spec(self._tracers.topic, 1, _RETENTION_MS, brokers),)
        )
        problem = f"cannot send tracers to {source}"
        if not self._retry_until_stopped(keeper.ensure, problem):
            return
        if not self._retry_until_stopped(producer.start, problem):
            return
        # Creates the topic again if it is deleted.
        keeping = Thread(target=keeper.run, args=(self._stopping,), name="tracers-topic", daemon=True)
        keeping.start()
        sequence, recreations = 0, keeper.recreations
        while not self._stopping.is_set():
            if recreations != (recreations := keeper.recreations):
                producer.renew()
            tracer = Tracer(
                source, self._tracers.topic, PARTITION, self._run, sequence := sequence + 1, self._now_ms()
            )
            with self._lock:
                self._delays.add_sent(tracer)
            producer.send(tracer.headers, partial(self._add_delivery, tracer))
            due_ms = tracer.produced_ms + round(1000 * self._tracers.every_s)
            while self._now_ms() < due_ms and not self._stopping.is_set():
                producer.poll(_POLL_S)
        producer.stop()

    def _add_delivery(self, tracer: Tracer, delivery: DeliveryReport) -> None:
        if delivery.offset is not None and not delivery.failure:
            with self._lock:
                self._delays.add_acknowledged(tracer, delivery.offset, round(1000 * delivery.seconds))

    def _read_until_stopped(self, cluster: str, topic: str) -> None:
        access = self._fleet.cluster(cluster).access
        report = partial(self._report_topic_change, cluster, topic)
        reader = FollowedReader(access, topic, CLIENT_ID, report)
        if not self._retry_until_stopped(reader.start, f"cannot read {topic} of {cluster}"):
            return
        try:
            if self._retry_until_stopped(
                lambda: reader.assign(reader.wait_for_partitions()), f"cannot read {topic} of {cluster}"
            ):
                follow = partial(follow_topics, access, (reader,), self._stopping)
                Thread(target=follow, name="tracers-changes", daemon=True).start()
                while not self._stopping.is_set():
                    self._read_record(cluster, reader)
        finally:
            reader.stop()

    def _read_record(self, cluster: str, reader: FollowedReader) -> None:
        record = reader.poll(_POLL_S)
        tracer = Tracer.from_headers(record.headers) if record else None
        if record and tracer:
            with self._lock:
                self._delays.add_seen(tracer, cluster, record.offset, self._now_ms())

    def _retry_until_stopped(self, attempt: Callable[[], None], problem: str) -> bool:
        """Repeat the attempt until it succeeds; return False if the loop was stopped before."""
        while not self._stopping.is_set():
            try:
                attempt()
            except KafkaUnavailableError as error:
                _log.warning("%s: %s", problem, error)
                self._stopping.wait(_RETRY_AFTER_S)
            else:
                return True
        return False
