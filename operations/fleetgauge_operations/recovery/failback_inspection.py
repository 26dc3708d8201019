"""What a failback finds at both ends of a mirror."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Fleet, Mirror
from fleetgauge_core.kafka import (
    Admin,
    Extents,
    Place,
    Record,
    TopicReader,
)
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.offsets.checkpoint import Log, Route
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.offsets.translation import translated
from fleetgauge_operations.recovery.plan.failback import (
    NONE_STRANDED,
    Failback,
    Returning,
    Span,
    Stranded,
    at_risk,
    new_since,
)
from fleetgauge_operations.recovery.record_diff import (
    COMPARED_AT_MOST,
    counted,
    fingerprint,
    records,
)

_SAMPLE = 3


@dataclass(frozen=True, slots=True)
class WayBack:
    """One mirror, whose source failed and is there again. All raise KafkaUnavailableError."""

    fleet: Fleet
    mirror: Mirror

    def look(self, known: Known, since: datetime | None) -> Failback:
        """``since``: when the primary was given up; without it nothing is said of what is new."""
        source, copy = (
            self.fleet.cluster(one).access for one in (self.mirror.source, self.mirror.destination)
        )
        here, there, admin = Extents(source, CLIENT_ID), Extents(copy, CLIENT_ID), Admin(source)
        for one in (here, there, admin):
            one.start()
        topics = here.topics([name for name in here.names() if self.mirror.takes(name)])
        places = [
            Place(name, number) for name, topic in sorted(topics.items()) for number in topic.partitions
        ]
        copies = there.led([self._copy(place) for place in places])
        logs, logs_there = _logs(here, places), _logs(there, copies)
        return Failback(
            primary=self.mirror.source,
            secondary=self.mirror.destination,
            names_kept=self.mirror.names == "kept",
            partitions=tuple(
                self._returning(place, logs[place], logs_there.get(self._copy(place)), known, since)
                for place in places
                if place in logs
            ),
            ordered=tuple(
                name for name in sorted(topics) if "compact" in admin.setting(name, "cleanup.policy")
            ),
        )

    def _copy(self, place: Place) -> Place:
        return Place(self.mirror.called_there(place.topic), place.partition)

    def _returning(
        self, place: Place, log: Log, there: Log | None, known: Known, since: datetime | None
    ) -> Returning:
        history = known.history(Route(self.mirror.source, self.mirror.destination, *place))
        copied = history.copied_until if history else 0
        span = at_risk(copied - 1 if copied else None, log)
        new = None
        if since is not None and there is not None:
            new = new_since(self._offset_at(self._copy(place), since, there.end), there)
        return Returning(place.topic, place.partition, span, self._stranded(place, span, history, there), new)

    def _stranded(
        self, place: Place, span: Span, history: History | None, there: Log | None
    ) -> Stranded | None:
        """None where there is too much to compare."""
        log = there or Log(0, 0)
        begin = translated(span.first, history, log).resume if history else None
        begin = log.start if begin is None else begin
        if max(len(span), log.end - begin) > COMPARED_AT_MOST:
            return None
        source, copy = (
            self.fleet.cluster(one).access for one in (self.mirror.source, self.mirror.destination)
        )
        arrived = counted(records(copy, self._copy(place), begin, log.end))
        missing = []
        for record in records(source, place, span.first, span.end):
            if arrived[mark := fingerprint(record)]:
                arrived[mark] -= 1
            else:
                missing.append(record)
        return _stranded(missing)

    def _offset_at(self, place: Place, since: datetime, end: int) -> int:
        reader = TopicReader(self.fleet.cluster(self.mirror.destination).access, place.topic, CLIENT_ID)
        reader.start()
        try:
            return reader.offsets_at([place.partition], since).get(place.partition, end)
        finally:
            reader.stop()


def _logs(extents: Extents, places: Iterable[Place]) -> Mapping[Place, Log]:
    wanted = tuple(places)
    starts, ends = extents.starts(wanted), extents.ends(wanted)
    return {place: Log(starts[place], ends[place]) for place in wanted if place in starts and place in ends}


def _stranded(missing: list[Record]) -> Stranded:
    if not missing:
        return NONE_STRANDED
    times = [record.at_ms for record in missing]
    return Stranded(
        count=len(missing),
        bytes=sum(len(record.key or b"") + len(record.value) for record in missing),
        first_ms=min(times),
        last_ms=max(times),
        offsets=tuple(record.offset for record in missing[:_SAMPLE]),
    )
