"""Brings what waits in the spool to the telemetry cluster, in its order, however long that is away.

A record leaves the spool when it is acknowledged. What was sent and not acknowledged is sent once more,
so it may arrive twice; its run and sequence tell.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, SpoolProducer, ensure_topics
from fleetgauge_probes.agent.spool import Spool, SpoolError

_log = logging.getLogger("fleetgauge.records")

_MOST_ON_THE_WAY = 1000
#: Records are handed over about as often.
_POLL_S = 0.25
_AGAIN_S = 2.0
#: A cluster that acknowledges nothing for so long is asked anew whether it is there.
_SILENT_S = 20.0
#: While the disk takes none: hours of a hundred brokers, in some 100 MB.
_MOST_IN_MEMORY = 36_000
#: The topic will never take such a record, and what comes after must not wait behind it.
_NEVER_TAKEN = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"})


@dataclass(slots=True)
class _Trip:
    """What one producer was given: positions on their way, and what was reported of them."""

    heard_s: float
    last: int = 0
    on_the_way: set[int] = field(default_factory=set)
    arrived: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    failure: str | None = None

    def reported(self, position: int, failure: str | None) -> None:
        self.on_the_way.discard(position)
        if failure is None:
            self.arrived.append(position)
        elif failure in _NEVER_TAKEN:
            self.refused.append(position)
        else:
            self.failure = failure


class Courier:
    """Takes records from ``start`` to ``stop``; what is left then waits for the next run.

    ``fates`` is told how many records were ``delivered`` or ``dropped``, ``broken`` that a bug ended it.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        spool: Spool,
        fates: Callable[[str, int], None],
        broken: Callable[[], None],
    ) -> None:
        self._telemetry = telemetry
        self._spool = spool
        self._fates = fates
        self._broken = broken
        self._unwritten: list[ProbeMinute] = []
        self._stopping = threading.Event()
        self._leave_at_s = float("inf")
        self._is_away = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._thread.start()

    def hand(self, closed: Sequence[ProbeMinute], still_open: Sequence[ProbeMinute]) -> None:
        """Keep these. While the disk takes none, closed ones wait in memory and open ones are forgone."""
        wanted = [*self._unwritten, *closed]
        if not wanted and not still_open:
            return
        try:
            self._drop(self._spool.keep(wanted, still_open), "the spool is full, the oldest go")
            self._unwritten = []
        except SpoolError as error:
            if not self._unwritten:
                _log.error("%s; records wait in memory", error)
            self._drop(max(0, len(wanted) - _MOST_IN_MEMORY), "the spool cannot be written, the oldest go")
            self._unwritten = wanted[-_MOST_IN_MEMORY:]

    def stop(self, timeout_s: float) -> int:
        """Deliver what waits, at most so long; returns how many records are left."""
        self._leave_at_s = time.monotonic() + timeout_s
        self._stopping.set()
        self._thread.join(timeout_s)
        return self._spool.state().records + len(self._unwritten)

    def _run(self) -> None:
        try:
            self._try()
            while not self._stopping.wait(_AGAIN_S):
                self._try()
        except Exception:
            _log.exception("the courier broke")
            self._broken()

    def _try(self) -> None:
        try:
            ensure_topics(self._telemetry)
            self._deliver()
        except (KafkaUnavailableError, SpoolError) as error:
            if not self._is_away:
                _log.warning("no records to telemetry: %s; they wait in %s", error, self._spool.folder)
            self._is_away = True

    def _is_over(self) -> bool:
        if time.monotonic() > self._leave_at_s:
            return True
        return self._stopping.is_set() and not self._spool.state().records

    def _deliver(self) -> None:
        """Until it is over. Raises KafkaUnavailableError, SpoolError; nothing is lost by that."""
        producer = SpoolProducer(self._telemetry.access, "fleetgauge-records")
        producer.start()
        trip = _Trip(time.monotonic())
        try:
            while not self._is_over():
                self._send(producer, trip)
                producer.poll(_POLL_S)
                self._settle(trip, time.monotonic())
        finally:
            producer.stop()

    def _send(self, producer: SpoolProducer, trip: _Trip) -> None:
        for record in self._spool.waiting(trip.last, _MOST_ON_THE_WAY - len(trip.on_the_way)):
            trip.last = record.position
            trip.on_the_way.add(record.position)
            report = partial(trip.reported, record.position)
            producer.send(self._telemetry.topics.probe_minutes.name, record.key, record.value, report)

    def _settle(self, trip: _Trip, now_s: float) -> None:
        if trip.arrived or trip.refused:
            self._spool.forget([*trip.arrived, *trip.refused])
        self._drop(len(trip.refused), "the telemetry cluster refuses records of their size or form")
        if trip.arrived:
            self._fates("delivered", len(trip.arrived))
            if self._is_away:
                _log.info("the telemetry cluster takes records again")
            self._is_away = False
        if trip.arrived or not trip.on_the_way:
            trip.heard_s = now_s
        trip.arrived, trip.refused = [], []
        if trip.failure:
            raise KafkaUnavailableError(trip.failure)
        if now_s - trip.heard_s > _SILENT_S:
            raise KafkaUnavailableError(
                f"{self._telemetry.bootstrap}: nothing acknowledged in {_SILENT_S:g} s"
            )

    def _drop(self, records: int, reason: str) -> None:
        if records:
            _log.error("%d records are dropped: %s", records, reason)
            self._fates("dropped", records)
