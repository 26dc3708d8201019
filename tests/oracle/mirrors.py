"""A world of mirrors that knows the truth: where each message lies, and which ones a group has not consumed.

Sources are mirrored into one topic on two aggregates, in orders of their own. Mirrors lag, are killed and
copy again, tell of what they copy by checkpoints that come late or get lost; logs are compacted, expire,
are cut and made anew; somebody looks at both ends of a route now and then. It shares no code with what is
judged by it.

One thing it leaves out unless asked for (``untold``), as no checkpoint can show it: a mirror that begins
again at a record that it had copied without telling of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SIDES = ("active", "passive")


class Message(NamedTuple):
    """One record, wherever it is copied to."""

    source: str
    incarnation: int
    offset: int

    @property
    def key(self) -> tuple[int, int]:
        """Ascends within a source."""
        return self.incarnation, self.offset


class Told(NamedTuple):
    """A row as somebody could have observed it; ``ids``: of the source and the aggregate."""

    kind: str
    src: int
    dst: int
    ids: tuple[str, str]


@dataclass
class Source:
    """``records``: by offset, whether there is a record (still)."""

    name: str
    pace: float
    incarnation: int = 0
    records: list[bool] = field(default_factory=list)
    ever: bool = False

    def next_record(self, offset: int) -> int | None:
        return next((at for at in range(offset, len(self.records)) if self.records[at]), None)

    def last_record(self) -> int | None:
        return next((at for at in reversed(range(len(self.records))) if self.records[at]), None)


@dataclass
class Aggregate:
    """``log``: None where an offset holds no record."""

    name: str
    incarnation: int = 0
    cuts: int = 0
    log: list[Message | None] = field(default_factory=list)


@dataclass
class Mirror:
    """One source to one aggregate. ``sent``: what it told; ``unsent``: what a kill would lose."""

    source: Source
    aggregate: Aggregate
    every: int
    next_offset: int = 0
    incarnation: int = 0
    begins: bool = True
    since: int = 0
    unsent: list[Told] = field(default_factory=list)
    sent: list[Told] = field(default_factory=list)
    observed: list[Told] = field(default_factory=list)
    looking: tuple[int, ...] | None = None

    @property
    def ids(self) -> tuple[str, str]:
        source, aggregate = self.source, self.aggregate
        return f"{source.name}{source.incarnation}", f"{aggregate.name}{aggregate.incarnation}"

    @property
    def state(self) -> tuple[int, ...]:
        return self.aggregate.incarnation, self.aggregate.cuts, self.source.incarnation

    @property
    def at(self) -> int:
        """Which of the source's offsets is to be copied next."""
        return self.next_offset if self.incarnation == self.source.incarnation else 0

    def copy(self) -> None:
        """The next record, if there is one."""
        if self.incarnation != self.source.incarnation:
            self.restart(0)
        offset = self.source.next_record(self.next_offset)
        if offset is None:
            return
        row = Told("sync", offset, len(self.aggregate.log), self.ids)
        self.aggregate.log.append(Message(self.source.name, self.incarnation, offset))
        self.next_offset = offset + 1
        self.since += 1
        if self.begins:
            self.sent.append(row)
        elif self.since >= self.every:
            self.unsent.append(row)
        else:
            return
        self.begins, self.since = False, 0

    def restart(self, offset: int) -> None:
        """What it had not sent is lost. The first record after it is told of at once."""
        self.incarnation, self.next_offset = self.source.incarnation, offset
        self.begins, self.unsent = True, []

    def newest(self) -> Told | None:
        return next((one for one in reversed(self.sent) if one.ids == self.ids), None)

    def observe(self) -> None:
        seen = sum(one.kind == "sync" for one in self.observed)
        self.observed += self.sent[seen:]

    def look(self) -> None:
        """The aggregate's end first, the source's some time later."""
        if self.looking is None:
            self.looking = (*self.state, len(self.aggregate.log))
            return
        *state, end = self.looking
        self.looking = None
        if tuple(state) == self.state:
            self.observe()
            kind = "idle_watermark" if self._has_all(end) else "fence"
            self.observed.append(Told(kind, len(self.source.records), end, self.ids))

    def _has_all(self, end: int) -> bool:
        """Whether the source's last record is the last of it that is found there."""
        last = self.source.last_record()
        if last is None:
            return not self.source.ever
        found = (one for one in reversed(self.aggregate.log[:end]) if one and one.source == self.source.name)
        return next(found, None) == Message(self.source.name, self.source.incarnation, last)


@dataclass(frozen=True)
class World:
    """How it all stands in the end. ``rows``: by side and source, what has been observed."""

    seed: int
    traits: frozenset[str]
    every: int
    active: tuple[Message | None, ...]
    passive: tuple[Message | None, ...]
    passive_start: int
    rows: Mapping[tuple[str, str], tuple[Told, ...]]
    ids: Mapping[str, str]
    """Of the aggregates' topics."""
    never: frozenset[Message]
    """What the passive holds and the active never will."""

    def reached(self, position: int) -> dict[str, tuple[int, int]]:
        """By source, the last that is consumed."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.active[:position]:
            if one:
                found[one.source] = max(one.key, found.get(one.source, one.key))
        return found

    def left(self, position: int) -> Iterator[tuple[int, Message]]:
        """Where in the passive log what is not consumed can be read, every copy of it."""
        reached = self.reached(position)
        for at, one in enumerate(self.passive[self.passive_start :], self.passive_start):
            if one and (one.source not in reached or one.key > reached[one.source]):
                yield at, one

    def first_left(self, position: int) -> int:
        """The oracle's answer."""
        return next((at for at, _ in self.left(position)), len(self.passive))

    def first_owed(self, position: int) -> int:
        """As ``first_left``, without what the active will never have."""
        return next((at for at, one in self.left(position) if one not in self.never), len(self.passive))

    def last_chance(self, position: int) -> int:
        """The last offset from which all that is owed can still be read: of each the last copy counts."""
        last = {one: at for at, one in self.left(position) if one not in self.never}
        return min(last.values(), default=len(self.passive))

    def duplicates(self, position: int, resume: int) -> int:
        """How many consumed messages are read again."""
        reached = self.reached(position)
        again = self.passive[max(resume, self.passive_start) :]
        return sum(
            one is not None and one.source in reached and one.key <= reached[one.source] for one in again
        )
