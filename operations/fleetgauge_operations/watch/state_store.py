"""What a watch leaves for the next one: its findings, and in a compacted topic all else that it needs.

A record of that topic says in JSON whose it is, and its key what it replaces. What a newer version wrote
and this one cannot read is passed over.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel, ValidationError

from fleetgauge_core.detection import (
    LONGEST_BURN_WINDOW,
    Finding,
    LatencyHistory,
    LatencyHistoryKey,
    LatencyQuantiles,
)
from fleetgauge_core.detection.record_reader import LatestFindingTimes, decode_finding
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import RecordProducer, TopicReader, read_topic_values
from fleetgauge_core.slo.burn import BurnMinute

_log = logging.getLogger("fleetgauge.watch")

_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


class LatencyBaselineRecord(BaseModel):
    """What a broker usually takes, as seen from a vantage: p50 and p99 in µs, a block after the other."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["learnt"] = "learnt"
    cluster: str
    broker: int
    vantage: str
    took: tuple[tuple[int, int], ...]

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.cluster}/{self.broker}/{self.vantage}"


class DeliveryRecord(BaseModel):
    """The last event that a notifier has been told, or need not be told; none is before all others.

    ``owes``: events before it that it is still to be told, for they waited while later ones did not.
    """

    model_config = ConfigDict(frozen=True)
    kind: Literal["told"] = "told"
    notifier: str
    event_id: str | None = None
    at: AwareDatetime = _NEVER
    owes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    """The latest events that the notifier rejected for good."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.notifier}"

    def owed(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Of all that was found, in order, what it has not been told."""
        ids = [one.event.event_id for one in findings]
        if self.event_id in ids:
            upto = len(ids) - ids[::-1].index(self.event_id)
            earlier, later = findings[:upto], findings[upto:]
        else:
            # Never stored, or expired since.
            earlier = [one for one in findings if one.event.at <= self.at]
            later = [one for one in findings if one.event.at > self.at]
        owes = [one for one in earlier if one.event.event_id in self.owes]
        return (*owes, *(one for one in later if one.is_alert or one.is_cleared))


class BurnRecord(BaseModel):
    """An hour of a cluster's minutes: minute of the hour, bad, attempted, succeeded, expected, measured."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["spent"] = "spent"
    cluster: str
    hour: AwareDatetime
    minutes: tuple[tuple[int, bool, int, int, int, int], ...]

    @property
    def key(self) -> str:
        """Taken again by a later hour, when no window looks back on this one any more."""
        slots = LONGEST_BURN_WINDOW // _HOUR + 2
        return f"{self.kind}/{self.cluster}/{int(self.hour.timestamp()) // 3600 % slots}"

    def burn_minutes(self) -> Iterator[BurnMinute]:
        for minute, bad, *counts in self.minutes:
            yield BurnMinute(self.hour + timedelta(minutes=minute), bool(bad), *counts)


class StateRecord(
    RootModel[Annotated[LatencyBaselineRecord | DeliveryRecord | BurnRecord, Field(discriminator="kind")]]
):
    """A record of the compacted topic."""


@dataclass(frozen=True, slots=True)
class RestoredState:
    """What there is of earlier watches; findings in their order."""

    findings: tuple[Finding, ...]
    histories: Mapping[LatencyHistoryKey, LatencyHistory]
    told: Mapping[str, DeliveryRecord]
    minutes: Mapping[str, Sequence[BurnMinute]]
    """By cluster, in no order."""


class StateStore:
    """The two topics, from ``start`` to ``stop``. What is kept is on its way when a call returns."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._producer = RecordProducer(telemetry.access, "fleetgauge-watch")
        #: What was told while telemetry was away must be known once it is back, however long that takes.
        self._patient = RecordProducer(telemetry.access, "fleetgauge-watch", delivery_timeout_s=None)
        self._events = TopicReader(telemetry.access, telemetry.topics.health_events.name, "fleetgauge-watch")
        self._changed = LatestFindingTimes()

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._producer.start()
        self._patient.start()
        self._events.start()

    def stop(self) -> None:
        """Deliver what is on its way, within a bound."""
        self._producer.stop()
        self._patient.stop()
        if lost := self._patient.failed:
            _log.error("%d findings, or notes of who was told of one, did not get out", lost)
        self._events.stop()

    def recall(self) -> RestoredState:
        """All that earlier watches left. Raises KafkaUnavailableError."""
        topics = self._telemetry.topics
        # What comes while this is read counts as late, and is known if it was read after all.
        bounds = self._events.read_offset_bounds(self._events.wait_for_partitions())
        self._events.assign_from({partition: end for partition, (_, end) in bounds.items()})
        events, notes = (self._values(name) for name in (topics.health_events.name, topics.watch_state.name))
        found = (one for value in events if (one := decode_finding(value)))
        return restore_state(tuple(one for one in found if self._changed.record_if_newer(one)), notes)

    def late(self) -> Iterator[Finding]:
        """What another watch found and could not leave in time: telemetry hung, and came back with us."""
        while record := self._events.poll(0):
            one = decode_finding(record.value)
            if one and self._is_news(one):
                yield one

    def _is_news(self, finding: Finding) -> bool:
        """Neither known nor older than what is known of the same."""
        return finding.event.at != self._changed.get(finding) and self._changed.record_if_newer(finding)

    def found(self, finding: Finding) -> None:
        """Keep what was found, for the tables too."""
        event = finding.event
        self._changed.record(finding)
        self._patient.send(self._telemetry.topics.health_events.name, event.cluster_id, event.encode())

    def learnt(self, of: LatencyHistoryKey, history: LatencyHistory) -> None:
        """Keep what a broker usually takes."""
        took = tuple((one.p50_us, one.p99_us) for one in history)
        whose = LatencyBaselineRecord(
            cluster=of.cluster_id, broker=of.broker_id, vantage=of.vantage, took=took
        )
        self._keep(whose, self._producer)

    def told(self, note: DeliveryRecord) -> None:
        """Keep what a notifier has been told."""
        self._keep(note, self._patient)

    def spent(self, cluster_id: str, minutes: Sequence[BurnMinute], at: datetime) -> None:
        """Keep those of the hour in which ``at`` is; they are ascending, and none is later."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        own = takewhile(lambda one: one.minute >= hour, reversed(minutes))
        told = tuple(((one.minute - hour) // _MINUTE, *one[1:]) for one in own)
        self._keep(BurnRecord(cluster=cluster_id, hour=hour, minutes=told[::-1]), self._producer)

    def _keep(
        self, note: LatencyBaselineRecord | DeliveryRecord | BurnRecord, producer: RecordProducer
    ) -> None:
        name = self._telemetry.topics.watch_state.name
        producer.send(name, note.key, note.model_dump_json().encode())

    def _values(self, topic: str) -> Iterator[bytes]:
        return read_topic_values(self._telemetry.access, topic, "fleetgauge-watch")


def restore_state(findings: tuple[Finding, ...], notes: Iterable[bytes]) -> RestoredState:
    """With the latest note of each key."""
    histories: dict[LatencyHistoryKey, LatencyHistory] = {}
    told: dict[str, DeliveryRecord] = {}
    spent: dict[str, BurnRecord] = {}
    for value in notes:
        try:
            note = StateRecord.model_validate_json(value).root
        except ValidationError as error:
            _log.warning("a note of an earlier watch was passed over: %d faults", error.error_count())
            continue
        match note:
            case DeliveryRecord():
                told[note.notifier] = note
            case BurnRecord():
                spent[note.key] = note
            case LatencyBaselineRecord():
                whose = LatencyHistoryKey(note.cluster, note.broker, note.vantage)
                histories[whose] = tuple(LatencyQuantiles(*one) for one in note.took)
    minutes: dict[str, list[BurnMinute]] = defaultdict(list)
    for hour in spent.values():
        minutes[hour.cluster] += hour.burn_minutes()
    return RestoredState(findings, histories, told, minutes)
