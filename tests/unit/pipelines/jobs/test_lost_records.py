"""Every record that a stream never reads is covered by a loss, whatever happens to its topics."""

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fleetgauge_core.metadata import LogBounds, PresentTopic, TopicChangeKind, TopicPartition
from fleetgauge_pipelines.io.stream_checkpoint import BatchOffsets, StreamGeneration
from fleetgauge_pipelines.jobs.stream_topics import (
    ReadOffsets,
    StreamChange,
    find_batch_changes,
    plan_generation,
)

TOPICS = ("minutes", "events")
NAMES = st.sampled_from(TOPICS)


class Record(NamedTuple):
    """A record by the ID of its topic, its offset, and how often the log had been truncated before."""

    topic_id: str
    offset: int
    truncations: int


@dataclass
class Log:
    """The log of a topic with one partition: its records from ``start`` on."""

    topic_id: str
    start: int = 0
    records: list[Record] = field(default_factory=list)
    truncations: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.records)

    @property
    def present(self) -> PresentTopic:
        return PresentTopic(self.topic_id, frozenset({0}), {0: LogBounds(self.start, self.end)})

    def read(self, start: int, end: int) -> dict[int, Record]:
        return {record.offset: record for record in self.records if start <= record.offset < end}


class Streaming(RuleBasedStateMachine):
    """A stream with Spark's rules under failOnDataLoss=false: what is not there any more is passed over."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = iter(range(10**6))
        self.logs = {name: Log(self.create_id()) for name in TOPICS}
        self.generation = StreamGeneration(
            0, {name: log.topic_id for name, log in self.logs.items()}, {name: {0: 0} for name in TOPICS}
        )
        self.positions = dict.fromkeys(TOPICS, 0)
        self.ends: dict[str, dict[int, int]] = {}
        self.planned: dict[str, int] | None = None
        self.batches = 0
        self.written: list[Record] = []
        self.stored: set[Record] = set()
        self.losses: list[StreamChange] = []
        self.ids_recreated: set[str] = set()
        #: A log that grows past the position after a truncation cannot be told from one that was never cut.
        self.cut: set[str] = set()

    def create_id(self) -> str:
        return f"id-{next(self.ids)}"

    @rule(name=NAMES, count=st.integers(1, 5))
    def write(self, name: str, count: int) -> None:
        if name in self.cut:
            return
        log = self.logs[name]
        for _ in range(count):
            record = Record(log.topic_id, log.end, log.truncations)
            log.records.append(record)
            self.written.append(record)

    @rule(name=NAMES, count=st.integers(1, 8))
    def expire(self, name: str, count: int) -> None:
        log = self.logs[name]
        expired = min(count, len(log.records))
        log.start += expired
        del log.records[:expired]

    @rule(name=NAMES)
    def recreate(self, name: str) -> None:
        self.logs[name] = Log(self.create_id())
        self.cut.discard(name)

    @rule(name=NAMES, count=st.integers(1, 5), later=st.integers(0, 3))
    def truncate(self, name: str, count: int, later: int) -> None:
        """Cut the end of a log, and write fewer records; those that were cut are the brokers' loss."""
        log = self.logs[name]
        lost = min(count, len(log.records))
        if lost == 0 or name in self.cut or self.planned:
            return
        self.written = [record for record in self.written if record not in log.records[-lost:]]
        del log.records[-lost:]
        log.truncations += 1
        if log.end >= self.positions[name]:
            return
        self.write(name, min(later, self.positions[name] - log.end - 1) or 0)
        self.cut.add(name)

    @rule()
    def look_at_the_ends(self) -> None:
        self.ends |= {
            name: {0: log.end}
            for name, log in self.logs.items()
            if log.topic_id == self.generation.topic_ids[name]
        }

    @precondition(lambda self: self.planned is None)
    @rule()
    def plan_a_batch(self) -> None:
        self.planned = {name: log.end for name, log in self.logs.items()}

    @precondition(lambda self: self.planned is not None)
    @rule()
    def read_the_batch(self) -> None:
        assert self.planned is not None
        if any(log.topic_id != self.generation.topic_ids[name] for name, log in self.logs.items()):
            self.begin_a_generation()
            return
        rows = {name: log.read(self.positions[name], self.planned[name]) for name, log in self.logs.items()}
        read = {
            TopicPartition(name, 0): ReadOffsets(min(offsets), len(offsets))
            for name, offsets in rows.items()
            if offsets
        }
        planned = BatchOffsets(
            {name: {0: position} for name, position in self.positions.items()},
            {name: {0: end} for name, end in self.planned.items()},
        )
        label = f"{self.generation.name}/{self.batches}"
        for name, topic_id in self.generation.topic_ids.items():
            changes = find_batch_changes(
                name, topic_id, planned, read, lambda partition: list(rows[partition.topic])
            )
            self.losses += [StreamChange(label, name, change) for change in changes]
            self.stored |= set(rows[name].values())
        self.positions = dict(self.planned)
        self.batches += 1
        self.planned = None
        self.cut.clear()

    def begin_a_generation(self) -> None:
        present = {name: log.present for name, log in self.logs.items()}
        positions = {name: {0: position} for name, position in self.positions.items()}
        opened = plan_generation(self.generation, positions, self.ends, present)
        assert opened is not None
        self.losses += opened.changes
        for change in opened.changes:
            if change.change.kind is TopicChangeKind.RECREATED:
                self.ids_recreated.add(self.generation.topic_ids[change.topic])
        self.generation = opened.generation
        self.positions = {name: starts[0] for name, starts in opened.generation.starts.items()}
        self.planned = None
        self.cut.clear()

    def is_read_later(self, record: Record) -> bool:
        return any(
            record in log.records
            and (log.topic_id != self.generation.topic_ids[name] or record.offset >= self.positions[name])
            for name, log in self.logs.items()
        )

    def is_found_later(self, record: Record) -> bool:
        """Return whether the stream has not yet come to where the record was."""
        for name, topic_id in self.generation.topic_ids.items():
            if record.topic_id == topic_id:
                return (
                    record.offset >= self.positions[name]
                    or self.logs[name].topic_id != topic_id
                    or name in self.cut
                )
        # A topic that came and went between two looks was never known.
        return record.topic_id in {log.topic_id for log in self.logs.values()}

    @invariant()
    def every_record_is_stored_or_comes_or_is_lost_with_a_loss(self) -> None:
        exact = {
            (change.change.topic_id, offset)
            for change in self.losses
            if change.change.is_exact
            for span in change.change.lost
            for offset in range(span.start, span.end)
        }
        truncated = {
            change.change.topic_id
            for change in self.losses
            if change.change.kind is TopicChangeKind.TRUNCATED
        }
        seen = {self.generation.topic_ids[name] for name in TOPICS} | self.ids_recreated
        for record in self.written:
            is_covered = (
                record in self.stored
                or self.is_read_later(record)
                or self.is_found_later(record)
                or (record.topic_id, record.offset) in exact
                or record.topic_id in self.ids_recreated
                or (record.topic_id in truncated and record.truncations > 0)
                or record.topic_id not in seen
            )
            assert is_covered, record
        cut = {record.topic_id for record in self.written if record.truncations}
        # An offset that was cut may have been stored before it was written and lost again.
        assert not {(each.topic_id, each.offset) for each in self.stored if each.topic_id not in cut} & exact


TestStreaming = Streaming.TestCase
