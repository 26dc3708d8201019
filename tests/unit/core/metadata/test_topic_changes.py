"""Changes of topics, and readers of a simulated topic that is changed at will."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import (
    ConfirmedTopicId,
    LogBounds,
    OffsetGap,
    PresentTopic,
    TopicChange,
    TopicChangeKind,
    TopicSnapshot,
    describe_change,
    find_topic_changes,
)

BOTH = frozenset({0, 1})
READ = TopicSnapshot("a", BOTH, {0: 10, 1: 5}, {0: 12, 1: 5})


def present(
    topic_id: str = "a", partitions: frozenset[int] = BOTH, **bounds: tuple[int, int]
) -> PresentTopic:
    """Return a topic; ``p0=(3, 9)`` are the bounds of partition 0."""
    return PresentTopic(
        topic_id, partitions, {int(name[1:]): LogBounds(*limits) for name, limits in bounds.items()}
    )


def test_an_unchanged_topic_has_no_change() -> None:
    assert find_topic_changes(READ, present(p0=(3, 12), p1=(5, 5))) == ()
    assert find_topic_changes(TopicSnapshot(None), None) == ()


def test_what_was_unread_of_a_deleted_topic_is_lost() -> None:
    (change,) = find_topic_changes(READ, None)
    assert (change.kind, change.resume, change.is_exact) == (TopicChangeKind.DELETED, {}, False)
    assert change.lost == (OffsetGap(0, 10, 12),)
    assert (
        describe_change(change) == "deleted; at least 2 records were not read: partition 0 offsets 10 to 11"
    )


def test_a_topic_of_the_same_name_is_read_from_its_beginning_even_where_it_is_longer() -> None:
    (change,) = find_topic_changes(READ, present("b", frozenset({0}), p0=(0, 90)))
    assert (change.kind, change.topic_id, change.resume) == (TopicChangeKind.RECREATED, "b", {0: 0})
    assert change.lost == (OffsetGap(0, 10, 12),)


def test_what_a_deletion_lost_is_not_counted_again_with_the_new_topic() -> None:
    (change,) = find_topic_changes(replace(READ, is_deleted=True), present("b"))
    assert (change.kind, change.lost) == (TopicChangeKind.RECREATED, ())


def test_a_topic_that_was_called_unknown_for_a_while_is_read_on_where_it_was() -> None:
    deleted = replace(READ, partitions=frozenset({0, 1, 2}), ends={2: 7}, is_deleted=True)
    assert find_topic_changes(deleted, None) == ()
    (change,) = find_topic_changes(deleted, present())
    assert (change.kind, change.resume) == (TopicChangeKind.RETURNED, {0: 10, 1: 5, 2: 7})
    (change,) = find_topic_changes(deleted, present("b"))
    assert (change.kind, change.resume) == (TopicChangeKind.RECREATED, {0: 0, 1: 0})


def test_added_partitions_are_read_from_their_beginning() -> None:
    (change,) = find_topic_changes(READ, present(partitions=frozenset({0, 1, 2, 3})))
    assert (change.kind, change.resume) == (TopicChangeKind.PARTITIONS_ADDED, {2: 0, 3: 0})
    assert describe_change(change).endswith("no record is known to be lost")


def test_records_that_expired_are_counted_exactly() -> None:
    (change,) = find_topic_changes(READ, present(p0=(18, 50), p1=(7, 9)))
    assert (change.kind, change.resume, change.is_exact) == (TopicChangeKind.EXPIRED, {0: 18, 1: 7}, True)
    assert describe_change(change) == (
        "records expired before they were read; 10 records were not read:"
        " partition 0 offsets 10 to 17, partition 1 offsets 5 to 6"
    )


def test_a_partition_that_was_to_be_read_from_its_end_has_lost_nothing() -> None:
    (change,) = find_topic_changes(TopicSnapshot("a", BOTH), present(p0=(18, 50)))
    assert (change.kind, change.resume, change.lost) == (TopicChangeKind.EXPIRED, {0: 18}, ())


def test_a_truncated_log_is_read_on_from_its_end() -> None:
    (change,) = find_topic_changes(READ, present(p0=(0, 8), p1=(0, 5)))
    assert (change.kind, change.resume, change.is_exact) == (TopicChangeKind.TRUNCATED, {0: 8}, False)


@dataclass
class SimulatedTopic:
    """A topic with one partition; each record ever written has its own number."""

    topic_id: int = 0
    start: int = 0
    records: list[int] = field(default_factory=list)
    written: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.records)

    def write(self, count: int) -> None:
        self.records += range(self.written, self.written + count)
        self.written += count

    def expire(self, count: int) -> None:
        removed = min(count, len(self.records))
        self.start, self.records = self.start + removed, self.records[removed:]

    def recreate(self) -> None:
        self.topic_id, self.start, self.records = self.topic_id + 1, 0, []


@dataclass
class SimulatedReader:
    """A reader that checks the topic before it reads, as a stream does."""

    topic: SimulatedTopic
    earlier: TopicSnapshot = field(default_factory=lambda: TopicSnapshot("0", frozenset({0}), {0: 0}))
    read: list[int] = field(default_factory=list)
    changes: list[TopicChange] = field(default_factory=list)

    def check_and_read(self, limit: int) -> None:
        there = PresentTopic(
            str(self.topic.topic_id), frozenset({0}), {0: LogBounds(self.topic.start, self.topic.end)}
        )
        position = self.earlier.positions[0]
        while changes := find_topic_changes(
            TopicSnapshot(self.earlier.topic_id, frozenset({0}), {0: position}, self.earlier.ends), there
        ):
            for change in changes:
                self.changes.append(change)
                position = change.resume[0]
            self.earlier = TopicSnapshot(there.topic_id, frozenset({0}), {0: position})
        first = position - self.topic.start
        self.read += self.topic.records[first : first + limit]
        position = min(position + limit, self.topic.end)
        self.earlier = TopicSnapshot(there.topic_id, frozenset({0}), {0: position}, {0: self.topic.end})


@given(
    st.lists(
        st.tuples(st.sampled_from(["write", "expire", "recreate", "read"]), st.integers(1, 9)), max_size=30
    )
)
def test_every_record_is_read_once_or_lost_and_losses_are_exact_or_called_bounds(
    steps: list[tuple[str, int]],
) -> None:
    topic = SimulatedTopic()
    reader = SimulatedReader(topic)
    for step, count in steps:
        match step:
            case "write":
                topic.write(count)
            case "expire":
                topic.expire(count)
            case "recreate":
                topic.recreate()
            case "read":
                reader.check_and_read(count)
    reader.check_and_read(10**6)
    reader.check_and_read(10**6)
    assert len(set(reader.read)) == len(reader.read)
    assert set(reader.read) >= set(topic.records)
    lost = topic.written - len(reader.read)
    counted = sum(change.lost_records for change in reader.changes)
    if all(change.is_exact for change in reader.changes):
        assert counted == lost
    else:
        assert counted <= lost


@pytest.mark.parametrize(
    ("known", "checks", "counted"),
    [
        (None, "aabbb", "yynyy"),
        (None, "ababb", "ynyny"),
        ("a", "aabb", "yyny"),
        ("a", "bb", "ny"),
        # None after a, and a again, is not taken for another topic.
        (None, "a-aa", "ynyy"),
        (None, "a--aa--", "ynynyny"),
        (None, "-aa", "nyy"),
        (None, "--ab", "nyyn"),
        # A broker that lags behind knows the topic that was deleted.
        (None, "a--bbaab", "ynynynny"),
        (None, "abbaaccbb", "ynynnnynn"),
    ],
)
def test_another_id_counts_once_two_checks_in_a_row_find_it(
    known: str | None, checks: str, counted: str
) -> None:
    identity = ConfirmedTopicId(known)
    results = [identity.check(None if topic_id == "-" else topic_id) for topic_id in checks]
    assert results == [letter == "y" for letter in counted]
