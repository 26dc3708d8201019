"""What happened to a topic while it was read: a comparison of what a reader knew with what is there.

Motivation: a topic that was deleted and created again has the same name, and other records at the same
offsets. A reader that knows the name alone skips the first of them, or waits for offsets that never come.

Approach: a topic is identified by its ID. A new topic, and a partition that was added, is read from its
beginning. Where the log begins after the reader's position, the records in between have expired, and reading
goes on at the beginning of the log. Where the log ends before the position, records that were read have been
truncated (an unclean election, KIP-320), and reading goes on at the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class TopicChangeKind(StrEnum):
    """What happened to a topic."""

    DELETED = "deleted"
    RECREATED = "recreated"
    RETURNED = "returned"
    PARTITIONS_ADDED = "partitions_added"
    EXPIRED = "expired"
    TRUNCATED = "truncated"


class LogBounds(NamedTuple):
    """The offset of a partition's first record, and the offset that its next record will have."""

    start: int
    end: int


class OffsetGap(NamedTuple):
    """Offsets of a partition from ``start`` (included) to ``end`` (not included)."""

    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets it has."""
        return self.end - self.start

    def __str__(self) -> str:
        """Describe the span for log lines."""
        return f"partition {self.partition} offsets {self.start} to {self.end - 1}"


class ConfirmedTopicId:
    """Which topic a name stands for: another ID, or none, counts once two checks in a row find it.

    A broker that has just started knows no topic, and one that lags behind knows the one before; a client
    that connects to it right after a change would learn of that. No topic gets the ID of an earlier one.
    """

    def __init__(self, topic_id: str | None = None) -> None:
        """``topic_id`` is the ID that is known from before, if any."""
        self.topic_id = topic_id
        """The last ID, also after the deletion of the topic."""
        self._exists = topic_id is not None
        self._latest: str | None = ""
        self._earlier: set[str | None] = set()

    def check(self, topic_id: str | None) -> bool:
        """Take note of the ID that a check found, None without a topic, and return whether it counts.

        The first ID counts at once, if none is known from before.
        """
        is_repeated, self._latest = topic_id == self._latest, topic_id
        is_present = self._exists and topic_id == self.topic_id
        is_first = self.topic_id is None and topic_id is not None
        if topic_id in self._earlier or not (is_repeated or is_present or is_first):
            return False
        self._exists = topic_id is not None
        if topic_id is not None:
            self._earlier |= {self.topic_id} - {None, topic_id}
            self.topic_id = topic_id
        return True


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """What a reader knew of a topic; ``topic_id`` is None if it never existed, or its ID is not known.

    ``positions`` are the offsets that are read next, of the partitions that have a position; ``ends`` are the
    last known ends. A topic that ``is_deleted`` was known so before its deletion.
    """

    topic_id: str | None
    partitions: frozenset[int] = frozenset()
    positions: Mapping[int, int] = field(default_factory=dict)
    ends: Mapping[int, int] = field(default_factory=dict)
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class PresentTopic:
    """What is there: the topic's ID and partitions, and the bounds of the partitions that were looked up."""

    topic_id: str
    partitions: frozenset[int]
    bounds: Mapping[int, LogBounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A change of a topic, and where reading goes on.

    ``resume`` has the next offset of each partition that is not read on where it was: 0 in a new log, even if
    its first records have expired, so that those are found to be lost. ``lost`` are records that will never
    be read: all of them if ``is_exact``, else at least these, because what was written after the last look
    is not known.
    """

    kind: TopicChangeKind
    topic_id: str | None
    resume: Mapping[int, int] = field(default_factory=dict)
    lost: tuple[OffsetGap, ...] = ()
    is_exact: bool = True

    @property
    def lost_records(self) -> int:
        """How many records were lost."""
        return sum(span.length for span in self.lost)


def find_topic_changes(earlier: TopicSnapshot, present: PresentTopic | None) -> tuple[TopicChange, ...]:
    """Return the changes; ``present`` is None while the topic does not exist.

    The first topic that a reader sees is no change.
    """
    if present is None:
        return () if earlier.topic_id is None or earlier.is_deleted else (_delete(earlier),)
    if earlier.topic_id != present.topic_id:
        return (_recreate(earlier, present),)
    if earlier.is_deleted:
        return (_return(earlier),)
    changes = (_add_partitions(earlier, present), _expire(earlier, present), _truncate(earlier, present))
    return tuple(change for change in changes if change)


def describe_change(change: TopicChange) -> str:
    """Return the change in words, with the offsets that were lost."""
    if not change.lost:
        return f"{_WORDS[change.kind]}; no record is known to be lost"
    spans = ", ".join(map(str, change.lost))
    quantity = f"{change.lost_records}" if change.is_exact else f"at least {change.lost_records}"
    return f"{_WORDS[change.kind]}; {quantity} records were not read: {spans}"


_WORDS = {
    TopicChangeKind.DELETED: "deleted",
    TopicChangeKind.RECREATED: "created anew, and read from its beginning",
    TopicChangeKind.RETURNED: "was not deleted after all, and is read on where it was",
    TopicChangeKind.PARTITIONS_ADDED: "has more partitions, which are read from their beginning",
    TopicChangeKind.EXPIRED: "records expired before they were read",
    TopicChangeKind.TRUNCATED: "its log was truncated, and is read on from its end",
}


def _delete(earlier: TopicSnapshot) -> TopicChange:
    return TopicChange(TopicChangeKind.DELETED, None, lost=_find_unread(earlier), is_exact=False)


def _recreate(earlier: TopicSnapshot, present: PresentTopic) -> TopicChange:
    resume = dict.fromkeys(sorted(present.partitions), 0)
    lost = _find_unread(earlier)
    return TopicChange(TopicChangeKind.RECREATED, present.topic_id, resume, lost, is_exact=False)


def _return(earlier: TopicSnapshot) -> TopicChange:
    # No topic gets the ID of another one, so brokers that had no metadata yet called it unknown. A partition
    # without a position was to be read from its end.
    resume = {
        partition: earlier.positions.get(partition, earlier.ends.get(partition, 0))
        for partition in sorted(earlier.partitions)
    }
    return TopicChange(TopicChangeKind.RETURNED, earlier.topic_id, resume)


def _add_partitions(earlier: TopicSnapshot, present: PresentTopic) -> TopicChange | None:
    added = dict.fromkeys(sorted(present.partitions - earlier.partitions), 0)
    return TopicChange(TopicChangeKind.PARTITIONS_ADDED, present.topic_id, added) if added else None


def _expire(earlier: TopicSnapshot, present: PresentTopic) -> TopicChange | None:
    # A partition without a position was to be read from its end, so nothing of it was lost.
    spans = [
        OffsetGap(partition, earlier.positions.get(partition, -1), bounds.start)
        for partition, bounds in present.bounds.items()
    ]
    resume = {span.partition: span.end for span in spans if span.length > 0}
    lost = _select_spans(span for span in spans if span.start >= 0)
    return TopicChange(TopicChangeKind.EXPIRED, present.topic_id, resume, lost) if resume else None


def _truncate(earlier: TopicSnapshot, present: PresentTopic) -> TopicChange | None:
    resume = {
        partition: present.bounds[partition].end
        for partition, position in earlier.positions.items()
        if partition in present.bounds and present.bounds[partition].end < position
    }
    # What was written between the truncation and now, at offsets that had been read, is skipped: how much
    # that is cannot be known.
    change = TopicChange(TopicChangeKind.TRUNCATED, present.topic_id, resume, is_exact=False)
    return change if resume else None


def _find_unread(earlier: TopicSnapshot) -> tuple[OffsetGap, ...]:
    if earlier.topic_id is None or earlier.is_deleted:
        # What was unread when the topic was deleted was lost then.
        return ()
    return _select_spans(
        OffsetGap(partition, position, earlier.ends.get(partition, position))
        for partition, position in earlier.positions.items()
    )


def _select_spans(spans: Iterable[OffsetGap]) -> tuple[OffsetGap, ...]:
    return tuple(sorted(span for span in spans if span.length > 0))
