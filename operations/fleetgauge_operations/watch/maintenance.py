"""What is planned to be out wakes nobody: findings wait until their maintenance is over, or they are.

Planned is what `fleetgauge correct` took out of the levels ahead of time. A finding is kept and shown all
the same; who is told is all that waits.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from fleetgauge_pipelines.detection import Finding, Subject
from fleetgauge_pipelines.slo.corrections import Correction, Segments, occurrences
from fleetgauge_probes.fleet import Fleet

_log = logging.getLogger("fleetgauge.watch")

Row = Mapping[str, Any]

_READ_EVERY_S = 60.0
#: For a lake that answers at all.
_FIRST_READ_S = 10.0
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planned for a fleet; ``clusters`` are the segments that each is in."""

    corrections: Sequence[Correction]
    clusters: Mapping[str, Segments]
    zone: str

    def covers(self, subject: Subject, at: datetime) -> bool:
        """Whether it is planned to be out then: its cluster, or the broker that it is about."""
        broker_id = subject.broker_id if subject.broker_id is not None else subject.towards
        segments = self.clusters.get(subject.cluster_id, frozenset())
        return any(
            one.covers(subject.cluster_id, segments)
            and one.broker_id in (None, broker_id)
            and any(occurrences(one, self.zone, at, at + _MOMENT))
            for one in self.corrections
        )


class Waiting:
    """The findings that wait. ``perhaps_told``: of earlier watches, who may have told them or not."""

    def __init__(self, perhaps_told: Iterable[Finding] = ()) -> None:
        self._findings = {one.subject: one for one in perhaps_told}
        self._perhaps_told = set(self._findings)

    def told_of(self, finding: Finding, planned: bool) -> tuple[Finding, ...]:
        """What is to be told now that this is found. Of one that waited nobody need know that it ended."""
        subject = finding.subject
        waits = subject in self._findings
        if finding.names and (planned or waits):
            self._findings[subject] = finding
            return ()
        if finding.clears and waits:
            known = subject in self._perhaps_told
            self._release(subject)
            return (finding,) if known else ()
        return (finding,) if finding.names or finding.clears else ()

    def over(self, planned: Callable[[Subject], bool]) -> tuple[Finding, ...]:
        """What is to be told because its maintenance is over."""
        due = [subject for subject in self._findings if not planned(subject)]
        return tuple(self._release(subject) for subject in due)

    def _release(self, subject: Subject) -> Finding:
        self._perhaps_told.discard(subject)
        return self._findings.pop(subject)


class Calendar:
    """The plan as the lake has it, read every minute from ``start`` to ``stop``."""

    def __init__(self, fleet: Fleet) -> None:
        self._lake = fleet.lake
        self._clusters = {one.id: one.segments for one in fleet.clusters}
        self._zone = fleet.week.zone
        self._trouble = ""
        self._read = Event()
        self._stopping = Event()
        self._thread = Thread(target=self._go_on, name="calendar", daemon=True)
        self.plan = Plan((), self._clusters, self._zone)

    def start(self) -> None:
        """Returns with the plan, unless the lake takes long."""
        self._thread.start()
        self._read.wait(_FIRST_READ_S)

    def stop(self) -> None:
        # A lake that hangs must not keep the watch.
        self._stopping.set()

    def _go_on(self) -> None:
        while True:
            rows = self._rows()
            if rows is not None:
                planned = tuple(_correction(row) for row in rows if row["withdrawn_at"] is None)
                self.plan = Plan(planned, self._clusters, self._zone)
            self._read.set()
            if self._stopping.wait(_READ_EVERY_S):
                return

    def _rows(self) -> Sequence[Row] | None:
        """None where the lake does not tell; what it told last holds on."""
        try:
            # The watch's image has no reader of tables: it needs none for its pulses.
            from fleetgauge_operations.corrections.store import Corrections
            from fleetgauge_pipelines.lakes.kept import KeptTableError
        except ModuleNotFoundError as error:
            self._unknown(f"{error.name} is not installed")
            return None
        try:
            rows = Corrections(self._lake).rows()
        except KeptTableError as error:
            self._unknown(str(error))
            return None
        self._trouble = ""
        return rows

    def _unknown(self, why: str) -> None:
        """Said once, until it is another."""
        if why != self._trouble:
            self._trouble = why
            _log.warning("maintenance is not known, so all is told: %s", why)


def _correction(row: Row) -> Correction:
    return Correction(**{one.name: row[one.name] for one in fields(Correction)})
