"""The state that a watch stores for its successor: findings, and all other state in a compacted topic.

The key of a state record says which earlier record it replaces. A record that this version cannot read,
because a newer version wrote it, is skipped.
"""

import logging
from collections import defaultdict, deque
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
from fleetgauge_core.kafka import (
    ClusterAdmin,
    FollowedReader,
    KafkaUnavailableError,
    RecordProducer,
    TopicFollower,
    read_topic_values,
)
from fleetgauge_core.slo.burn import BurnMinute
from fleetgauge_operations.watch.state_copy import RecreationFollower, StateCopy
from fleetgauge_operations.watch.vantage_times import SilentSince

_log = logging.getLogger("fleetgauge.watch")

_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


class LatencyBaselineRecord(BaseModel):
    """The latency history of a broker at a vantage: p50 and p99 in µs of each block of rounds, in order."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["learnt"] = "learnt"
    cluster: str
    broker: int
    vantage: str
    took: tuple[tuple[int, int], ...]

    @property
    def key(self) -> str:
        """The record key."""
        return f"{self.kind}/{self.cluster}/{self.broker}/{self.vantage}"


class DeliveryRecord(BaseModel):
    """The last event that a notifier was sent or need not be sent; without ``event_id`` there is none.

    ``owes`` has the IDs of earlier events that are still to be sent, because they were postponed.
    """

    model_config = ConfigDict(frozen=True)
    kind: Literal["told"] = "told"
    notifier: str
    event_id: str | None = None
    at: AwareDatetime = _NEVER
    owes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    """IDs of the latest events that the receiver rejected for good."""

    @property
    def key(self) -> str:
        """The record key."""
        return f"{self.kind}/{self.notifier}"

    def select_undelivered(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return those of all findings, given in order, that the notifier is still to be sent."""
        event_ids = [finding.event.event_id for finding in findings]
        if self.event_id in event_ids:
            split = len(event_ids) - event_ids[::-1].index(self.event_id)
            earlier, later = findings[:split], findings[split:]
        else:
            # The event was never stored, or its retention has expired.
            earlier = [finding for finding in findings if finding.event.at <= self.at]
            later = [finding for finding in findings if finding.event.at > self.at]
        postponed = [finding for finding in earlier if finding.event.event_id in self.owes]
        return (*postponed, *(finding for finding in later if finding.is_alert or finding.is_cleared))


class BurnRecord(BaseModel):
    """One hour of a cluster's burn minutes.

    Each is the minute of the hour, whether it is bad, the probes attempted and succeeded, and the
    broker-minutes expected and measured.
    """

    model_config = ConfigDict(frozen=True)
    kind: Literal["spent"] = "spent"
    cluster: str
    hour: AwareDatetime
    minutes: tuple[tuple[int, bool, int, int, int, int], ...]

    @property
    def key(self) -> str:
        """The record key; a later hour reuses it once no burn window includes this hour."""
        slots = LONGEST_BURN_WINDOW // _HOUR + 2
        return f"{self.kind}/{self.cluster}/{int(self.hour.timestamp()) // 3600 % slots}"

    def burn_minutes(self) -> Iterator[BurnMinute]:
        """Yield the minutes of the hour."""
        for minute, is_bad, *counts in self.minutes:
            yield BurnMinute(self.hour + timedelta(minutes=minute), bool(is_bad), *counts)


class VantageRecord(BaseModel):
    """The vantages of a cluster: when each silent one was last heard, None for all others."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["heard"] = "heard"
    cluster: str
    vantages: dict[str, AwareDatetime | None]

    @property
    def key(self) -> str:
        """The record key."""
        return f"{self.kind}/{self.cluster}"


AnyStateRecord = LatencyBaselineRecord | DeliveryRecord | BurnRecord | VantageRecord


class StateRecord(RootModel[Annotated[AnyStateRecord, Field(discriminator="kind")]]):
    """A record of the compacted topic."""


@dataclass(frozen=True, slots=True)
class RestoredState:
    """The state that earlier watches stored; findings in order."""

    findings: tuple[Finding, ...]
    histories: Mapping[LatencyHistoryKey, LatencyHistory]
    deliveries: Mapping[str, DeliveryRecord]
    """By notifier."""
    burn_minutes: Mapping[str, Sequence[BurnMinute]]
    """By cluster, in no order."""
    vantages: Mapping[str, SilentSince]
    """By cluster."""


class StateStore:
    """Reads and writes the two topics from ``start`` to ``stop``; records are sent asynchronously."""

    def __init__(
        self,
        telemetry: Telemetry,
        state_copy: StateCopy | None = None,
        event_reader: FollowedReader | None = None,
    ) -> None:
        """``state_copy`` is what this process stored in earlier leaderships."""
        self._telemetry = telemetry
        self._copy = state_copy or StateCopy()
        self._admin = ClusterAdmin(telemetry.access, timeout_s=10)
        self._producer = RecordProducer(telemetry.access, "fleetgauge-watch")
        #: Without a delivery time-out: what was sent to receivers while the telemetry cluster was unavailable
        #: must be recorded as soon as it is back.
        self._durable_producer = RecordProducer(telemetry.access, "fleetgauge-watch", delivery_timeout_s=None)
        self._event_reader = event_reader or FollowedReader(
            telemetry.access, telemetry.topics.health_events.name, "fleetgauge-watch", lambda _: None
        )
        self._is_stopped = False
        self._latest_times = LatestFindingTimes()
        self._retention = timedelta(hours=telemetry.topics.health_events.retention_hours)
        self.findings: deque[Finding] = deque()
        """All findings that the topic retains, in order; those of this watch are appended."""

    @property
    def followers(self) -> tuple[TopicFollower, ...]:
        """The followers to be told when one of the two topics is deleted and created again."""
        topics = self._telemetry.topics
        return (
            self._event_reader,
            RecreationFollower(topics.health_events.name, self._copy, self._restore_events_topic),
            RecreationFollower(topics.watch_state.name, self._copy, self._restore_state_topic),
        )

    def start(self) -> None:
        """Create the clients. Raises: KafkaUnavailableError if secrets cannot be read."""
        self._producer.start()
        self._durable_producer.start()
        self._event_reader.start()
        self._admin.start()

    def stop(self) -> None:
        """Deliver the queued records, within a bound, and close the clients."""
        with self._copy.lock:
            self._is_stopped = True
        self._producer.stop()
        self._durable_producer.stop()
        if lost := self._durable_producer.failed:
            _log.error("%d findings or delivery records could not be written", lost)
        self._event_reader.stop()

    def restore(self) -> RestoredState:
        """Return all state that earlier watches stored. Raises: KafkaUnavailableError."""
        topics = self._telemetry.topics
        # Events that arrive during this read are read again as late findings, unless they are known by then.
        bounds = self._event_reader.read_offset_bounds(self._event_reader.wait_for_partitions())
        self._event_reader.assign_from({partition: end for partition, (_, end) in bounds.items()})
        events, records = (
            self._read_values(name) for name in (topics.health_events.name, topics.watch_state.name)
        )
        findings = (finding for value in events if (finding := decode_finding(value)))
        latest = tuple(finding for finding in findings if self._latest_times.record_if_newer(finding))
        with self._copy.lock:
            restored = restore_state(self._restore_findings(latest), self._restore_records(tuple(records)))
        self.findings = deque(restored.findings)
        return restored

    def _restore_findings(self, stored: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the stored findings, and those of a topic that was deleted, which are written again."""
        fingerprints = {finding.event.fingerprint for finding in stored}
        copied: tuple[Finding, ...] = ()
        if self._is_recreated(self._telemetry.topics.health_events.name):
            copied = tuple(
                finding
                for fingerprint, finding in self._copy.findings.items()
                if fingerprint not in fingerprints
            )
        for finding in copied:
            self._write_finding(finding)
        self._copy.findings |= {finding.event.fingerprint: finding for finding in stored}
        return tuple(sorted((*copied, *stored), key=lambda finding: finding.event.at)) if copied else stored

    def _restore_records(self, stored: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the stored records, and those of a topic that was deleted, which are written again."""
        stored_by_key = {record.key: value for record, value in _parse_records(stored)}
        copied: dict[str, bytes] = {}
        if self._is_recreated(self._telemetry.topics.watch_state.name):
            copied = {key: value for key, value in self._copy.records.items() if key not in stored_by_key}
        self._copy.records = copied | stored_by_key
        self._write_records_again(copied)
        return (*copied.values(), *stored)

    def _is_recreated(self, topic: str) -> bool:
        present = self._admin.describe_topic(topic)
        return present is not None and self._copy.adopt_topic(topic, present.topic_id)

    def _restore_events_topic(self) -> None:
        with self._copy.lock:
            self._renew_producers()
            self._write_findings_again()

    def _restore_state_topic(self) -> None:
        with self._copy.lock:
            self._renew_producers()
            self._write_records_again(self._copy.records)

    def _renew_producers(self) -> None:
        if self._is_stopped:
            raise KafkaUnavailableError("the state store has stopped")
        self._durable_producer.renew()
        self._producer.renew()

    def _write_findings_again(self) -> None:
        with self._copy.lock:
            for finding in sorted(self._copy.findings.values(), key=lambda finding: finding.event.at):
                self._write_finding(finding)

    def _write_records_again(self, records: Mapping[str, bytes]) -> None:
        topic = self._telemetry.topics.watch_state.name
        with self._copy.lock:
            for key, value in records.items():
                is_delivery = key.startswith(f"{DeliveryRecord.model_fields['kind'].default}/")
                producer = self._durable_producer if is_delivery else self._producer
                producer.send(topic, key, value)

    def read_late_findings(self) -> Iterator[Finding]:
        """Yield new findings of other watches, which an unavailable telemetry cluster delayed."""
        while record := self._event_reader.poll(0):
            finding = decode_finding(record.value)
            if finding and self._is_new(finding):
                self._append(finding)
                yield finding

    def _is_new(self, finding: Finding) -> bool:
        """Return whether the finding is neither known nor older than a known one of its subject."""
        is_known = finding.event.at == self._latest_times.get(finding)
        return not is_known and self._latest_times.record_if_newer(finding)

    def save_finding(self, finding: Finding) -> None:
        """Write a finding to the topic from which the lake's tables are filled too."""
        self._append(finding)
        self._write_finding(finding)

    def _write_finding(self, finding: Finding) -> None:
        event = finding.event
        self._latest_times.record(finding)
        with self._copy.lock:
            self._copy.findings[event.fingerprint] = finding
            self._durable_producer.send(
                self._telemetry.topics.health_events.name, event.cluster_id, event.encode()
            )

    def _append(self, finding: Finding) -> None:
        """Append a finding, and drop those that the topic does not retain any more."""
        self.findings.append(finding)
        while self.findings[0].event.at < finding.event.at - self._retention:
            self.findings.popleft()

    def save_latency_history(self, key: LatencyHistoryKey, history: LatencyHistory) -> None:
        """Write the latency history of a broker."""
        blocks = tuple((quantiles.p50_us, quantiles.p99_us) for quantiles in history)
        record = LatencyBaselineRecord(
            cluster=key.cluster_id, broker=key.broker_id, vantage=key.vantage, took=blocks
        )
        self._send(record, self._producer)

    def save_delivery(self, record: DeliveryRecord) -> None:
        """Write the progress of a notifier."""
        self._send(record, self._durable_producer)

    def save_burn_minutes(self, cluster_id: str, minutes: Sequence[BurnMinute], at: datetime) -> None:
        """Write the minutes of the hour of ``at``; ``minutes`` are ascending, and none is in a later hour."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        descending = takewhile(lambda minute: minute.minute >= hour, reversed(minutes))
        rows = tuple(((minute.minute - hour) // _MINUTE, *minute[1:]) for minute in descending)
        self._send(BurnRecord(cluster=cluster_id, hour=hour, minutes=rows[::-1]), self._producer)

    def save_vantages(self, cluster_id: str, vantages: SilentSince) -> None:
        """Write which vantages of a cluster are silent."""
        self._send(VantageRecord(cluster=cluster_id, vantages=dict(vantages)), self._durable_producer)

    def _send(self, record: AnyStateRecord, producer: RecordProducer) -> None:
        value = record.model_dump_json().encode()
        with self._copy.lock:
            self._copy.records[record.key] = value
            producer.send(self._telemetry.topics.watch_state.name, record.key, value)

    def _read_values(self, topic: str) -> Iterator[bytes]:
        return read_topic_values(self._telemetry.access, topic, "fleetgauge-watch")


def _parse_records(values: Iterable[bytes]) -> Iterator[tuple[AnyStateRecord, bytes]]:
    """Yield each valid record with its value."""
    for value in values:
        try:
            yield StateRecord.model_validate_json(value).root, value
        except ValidationError as error:
            _log.warning("skipped a state record that is invalid: %d errors", error.error_count())


def restore_state(findings: tuple[Finding, ...], values: Iterable[bytes]) -> RestoredState:
    """Return the state from findings and the values of state records; the last of each key counts."""
    histories: dict[LatencyHistoryKey, LatencyHistory] = {}
    deliveries: dict[str, DeliveryRecord] = {}
    burn_records: dict[str, BurnRecord] = {}
    vantages: dict[str, SilentSince] = {}
    for record, _ in _parse_records(values):
        match record:
            case DeliveryRecord():
                deliveries[record.notifier] = record
            case BurnRecord():
                burn_records[record.key] = record
            case VantageRecord():
                vantages[record.cluster] = record.vantages
            case LatencyBaselineRecord():
                key = LatencyHistoryKey(record.cluster, record.broker, record.vantage)
                histories[key] = tuple(LatencyQuantiles(*block) for block in record.took)
    burn_minutes: dict[str, list[BurnMinute]] = defaultdict(list)
    for burn_record in burn_records.values():
        burn_minutes[burn_record.cluster] += burn_record.burn_minutes()
    return RestoredState(findings, histories, deliveries, burn_minutes, vantages)
