"""A simulation of mirroring that knows the offset of each message, and which ones a group has not consumed.

Sources are mirrored into one topic on two aggregate clusters, each in its own order. Mirrors lag, are killed
and copy records again; their offset syncs arrive late or are lost; logs are compacted, expire, are cut short
and recreated; an observer compares both ends of a route from time to time. It shares no code with the
product.

Unless asked for (``unsynced_restarts``), it omits an event that no offset sync can show: a mirror that
restarts at a record that it had copied without a sync.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SIDES = ("active", "passive")


class Message(NamedTuple):
    """A record of a source, and all of its copies."""

    source: str
    incarnation: int
    offset: int

    @property
    def key(self) -> tuple[int, int]:
        """Sort key, ascending within a source."""
        return self.incarnation, self.offset


class ObservedRow(NamedTuple):
    """A row of the checkpoint store; ``ids``: topic ids in the source and in the aggregate."""

    kind: str
    src: int
    dst: int
    ids: tuple[str, str]


@dataclass
class Source:
    """A source cluster's partition; ``records``: by offset, whether the record exists."""

    name: str
    rate: float
    incarnation: int = 0
    records: list[bool] = field(default_factory=list)
    had_records: bool = False

    def next_record(self, offset: int) -> int | None:
        return next((at for at in range(offset, len(self.records)) if self.records[at]), None)

    def last_record(self) -> int | None:
        return next((at for at in reversed(range(len(self.records))) if self.records[at]), None)


@dataclass
class Aggregate:
    """An aggregate cluster's partition; ``log``: None where an offset has no record."""

    name: str
    incarnation: int = 0
    truncations: int = 0
    log: list[Message | None] = field(default_factory=list)


@dataclass
class Mirror:
    """Mirrors one source to one aggregate; a kill loses the ``unsent`` offset syncs."""

    source: Source
    aggregate: Aggregate
    sync_interval: int
    next_offset: int = 0
    incarnation: int = 0
    has_restarted: bool = True
    since_sync: int = 0
    unsent: list[ObservedRow] = field(default_factory=list)
    sent: list[ObservedRow] = field(default_factory=list)
    observed: list[ObservedRow] = field(default_factory=list)
    first_reading: tuple[int, ...] | None = None

    @property
    def ids(self) -> tuple[str, str]:
        source, aggregate = self.source, self.aggregate
        return f"{source.name}{source.incarnation}", f"{aggregate.name}{aggregate.incarnation}"

    @property
    def state(self) -> tuple[int, ...]:
        return self.aggregate.incarnation, self.aggregate.truncations, self.source.incarnation

    @property
    def at(self) -> int:
        """The source offset that is copied next."""
        return self.next_offset if self.incarnation == self.source.incarnation else 0

    def copy(self) -> None:
        """Copy the next record, if there is one."""
        if self.incarnation != self.source.incarnation:
            self.restart(0)
        offset = self.source.next_record(self.next_offset)
        if offset is None:
            return
        row = ObservedRow("sync", offset, len(self.aggregate.log), self.ids)
        self.aggregate.log.append(Message(self.source.name, self.incarnation, offset))
        self.next_offset = offset + 1
        self.since_sync += 1
        if self.has_restarted:
            self.sent.append(row)
        elif self.since_sync >= self.sync_interval:
            self.unsent.append(row)
        else:
            return
        self.has_restarted, self.since_sync = False, 0

    def restart(self, offset: int) -> None:
        """Restart at an offset; unsent syncs are lost, and the first copied record yields a sync."""
        self.incarnation, self.next_offset = self.source.incarnation, offset
        self.has_restarted, self.unsent = True, []

    def newest(self) -> ObservedRow | None:
        return next((row for row in reversed(self.sent) if row.ids == self.ids), None)

    def observe(self) -> None:
        observed_syncs = sum(row.kind == "sync" for row in self.observed)
        self.observed += self.sent[observed_syncs:]

    def read_ends(self) -> None:
        """Read the end of the aggregate on the first call, and the end of the source on the next one."""
        if self.first_reading is None:
            self.first_reading = (*self.state, len(self.aggregate.log))
            return
        *state, end = self.first_reading
        self.first_reading = None
        if tuple(state) == self.state:
            self.observe()
            kind = "idle_watermark" if self._contains_last_record(end) else "fence"
            self.observed.append(ObservedRow(kind, len(self.source.records), end, self.ids))

    def _contains_last_record(self, end: int) -> bool:
        """Return whether the source's last record is its latest one before ``end``."""
        last = self.source.last_record()
        if last is None:
            return not self.source.had_records
        copies = (
            message
            for message in reversed(self.aggregate.log[:end])
            if message and message.source == self.source.name
        )
        return next(copies, None) == Message(self.source.name, self.source.incarnation, last)


@dataclass(frozen=True)
class MirroringResult:
    """The final state of the simulation; ``rows``: the observed rows by side and source."""

    seed: int
    traits: frozenset[str]
    sync_interval: int
    active: tuple[Message | None, ...]
    passive: tuple[Message | None, ...]
    passive_start: int
    rows: Mapping[tuple[str, str], tuple[ObservedRow, ...]]
    ids: Mapping[str, str]
    """Topic ids of the aggregates, by side."""
    never_in_active: frozenset[Message]
    """The messages in the passive aggregate that will never be in the active one."""

    def last_consumed_by_source(self, position: int) -> dict[str, tuple[int, int]]:
        """Return the key of the last consumed message by source."""
        last: dict[str, tuple[int, int]] = {}
        for message in self.active[:position]:
            if message:
                last[message.source] = max(message.key, last.get(message.source, message.key))
        return last

    def find_unconsumed(self, position: int) -> Iterator[tuple[int, Message]]:
        """Yield the passive offset of every copy of each unconsumed message."""
        reached = self.last_consumed_by_source(position)
        for at, message in enumerate(self.passive[self.passive_start :], self.passive_start):
            if message and (message.source not in reached or message.key > reached[message.source]):
                yield at, message

    def first_unconsumed_offset(self, position: int) -> int:
        """Return the first passive offset with an unconsumed message."""
        return next((at for at, _ in self.find_unconsumed(position)), len(self.passive))

    def first_required_offset(self, position: int) -> int:
        """Return the first passive offset with an unconsumed message that the active will also have."""
        return next(
            (at for at, message in self.find_unconsumed(position) if message not in self.never_in_active),
            len(self.passive),
        )

    def last_safe_offset(self, position: int) -> int:
        """Return the last passive offset from which a copy of every required message can be read."""
        last = {
            message: at
            for at, message in self.find_unconsumed(position)
            if message not in self.never_in_active
        }
        return min(last.values(), default=len(self.passive))

    def count_duplicates(self, position: int, resume: int) -> int:
        """Return how many consumed messages are read again."""
        reached = self.last_consumed_by_source(position)
        replayed = self.passive[max(resume, self.passive_start) :]
        return sum(
            message is not None and message.source in reached and message.key <= reached[message.source]
            for message in replayed
        )
