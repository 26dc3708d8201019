"""Forwards spooled probe minutes to the telemetry cluster in order, however long the cluster is unavailable.

A record is removed from the spool when it is acknowledged. A record that was sent but not acknowledged is
sent again, so it may arrive twice; its run id and sequence identify the duplicate.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, SpoolProducer, TopicKeeper
from fleetgauge_probes.agent.spool import Spool, SpoolError

_log = logging.getLogger("fleetgauge.records")

_MAX_IN_FLIGHT = 1000
#: How long one poll waits for delivery reports; the spool is read once per poll.
_POLL_S = 0.25
_RETRY_S = 2.0
#: Without an acknowledgement for this long, the forwarder reconnects.
_ACK_TIMEOUT_S = 20.0
#: While the disk cannot be written: hours of records for a hundred brokers, about 100 MB.
_MAX_IN_MEMORY = 36_000
#: The topic will never accept such a record, and later records must not wait behind it.
_PERMANENT_FAILURES = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"})


@dataclass(slots=True)
class _ProducerProgress:
    """Positions that one producer was given, and their delivery reports."""

    last_ack_s: float
    last_position: int = 0
    in_flight: set[int] = field(default_factory=set)
    acknowledged: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    failure: str | None = None

    def record_delivery(self, position: int, failure: str | None) -> None:
        self.in_flight.discard(position)
        if failure is None:
            self.acknowledged.append(position)
        elif failure in _PERMANENT_FAILURES:
            self.rejected.append(position)
        else:
            self.failure = failure


class SpoolForwarder:
    """Stores records and forwards them from ``start`` to ``stop``; the next run forwards the rest.

    ``count_records`` is called with ``delivered`` or ``dropped`` and a number of records.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        spool: Spool,
        count_records: Callable[[str, int], None],
        topics: TopicKeeper,
    ) -> None:
        """Prepare to forward from an open spool; ``topics`` keeps the telemetry topics."""
        self._telemetry = telemetry
        self._topics = topics
        self._spool = spool
        self._count_records = count_records
        self._unwritten: list[ProbeMinute] = []
        self._stopping = threading.Event()
        self._deadline_s = float("inf")
        self._is_unavailable = False

    def start(self) -> None:
        """Start the forwarding thread."""
        self._thread = threading.Thread(target=self._run, name="spool-forwarder", daemon=True)
        self._thread.start()

    def store(self, closed: Sequence[ProbeMinute], still_open: Sequence[ProbeMinute]) -> None:
        """Store records in the spool.

        While the spool cannot be written, closed records are kept in memory and open minutes are discarded.
        """
        pending = [*self._unwritten, *closed]
        if not pending and not still_open:
            return
        try:
            self._report_dropped(self._spool.store(pending, still_open), "the spool is full (oldest first)")
            self._unwritten = []
        except SpoolError as error:
            if not self._unwritten:
                _log.error("%s; records are kept in memory", error)
            excess = max(0, len(pending) - _MAX_IN_MEMORY)
            self._report_dropped(excess, "the spool cannot be written and memory is full (oldest first)")
            self._unwritten = pending[-_MAX_IN_MEMORY:]

    def stop(self, timeout_s: float) -> int:
        """Forward the remaining records for up to ``timeout_s`` and return how many are left."""
        self._deadline_s = time.monotonic() + timeout_s
        self._stopping.set()
        self._thread.join(timeout_s)
        return self._spool.read_state().records + len(self._unwritten)

    def _run(self) -> None:
        self._forward_until_failure()
        while not self._stopping.wait(_RETRY_S):
            self._forward_until_failure()

    def _forward_until_failure(self) -> None:
        try:
            self._topics.ensure()
            self._forward()
        except (KafkaUnavailableError, SpoolError) as error:
            if not self._is_unavailable:
                _log.warning(
                    "cannot send records to the telemetry cluster: %s; they are kept in %s",
                    error,
                    self._spool.folder,
                )
            self._is_unavailable = True

    def _is_finished(self) -> bool:
        if time.monotonic() > self._deadline_s:
            return True
        return self._stopping.is_set() and not self._spool.read_state().records

    def _forward(self) -> None:
        """Forward until stopped, or until a topic was recreated, which needs another producer.

        Raises: KafkaUnavailableError, SpoolError; unacknowledged records stay in the spool.
        """
        producer = SpoolProducer(self._telemetry.access, "fleetgauge-records")
        producer.start()
        progress, recreations = _ProducerProgress(time.monotonic()), self._topics.recreations
        try:
            while not self._is_finished() and self._topics.recreations == recreations:
                self._send_batch(producer, progress)
                producer.poll(_POLL_S)
                self._apply_deliveries(progress, time.monotonic())
        finally:
            producer.stop()

    def _send_batch(self, producer: SpoolProducer, progress: _ProducerProgress) -> None:
        limit = _MAX_IN_FLIGHT - len(progress.in_flight)
        for record in self._spool.read_closed(progress.last_position, limit):
            progress.last_position = record.position
            progress.in_flight.add(record.position)
            on_delivery = partial(progress.record_delivery, record.position)
            producer.send(self._telemetry.topics.probe_minutes.name, record.key, record.value, on_delivery)

    def _apply_deliveries(self, progress: _ProducerProgress, now_s: float) -> None:
        if progress.acknowledged or progress.rejected:
            self._spool.remove([*progress.acknowledged, *progress.rejected])
        self._report_dropped(
            len(progress.rejected), "the telemetry cluster rejects their size or format permanently"
        )
        if progress.acknowledged:
            self._count_records("delivered", len(progress.acknowledged))
            if self._is_unavailable:
                _log.info("the telemetry cluster accepts records again")
            self._is_unavailable = False
        if progress.acknowledged or not progress.in_flight:
            progress.last_ack_s = now_s
        progress.acknowledged, progress.rejected = [], []
        if progress.failure:
            raise KafkaUnavailableError(progress.failure)
        if now_s - progress.last_ack_s > _ACK_TIMEOUT_S:
            raise KafkaUnavailableError(
                f"{self._telemetry.bootstrap}: no acknowledgement for {_ACK_TIMEOUT_S:g} s"
            )

    def _report_dropped(self, records: int, reason: str) -> None:
        if records:
            _log.error("%d records dropped: %s", records, reason)
            self._count_records("dropped", records)
