from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import LogBounds, OffsetGap, PresentTopic, TopicChangeKind
from fleetgauge_pipelines.io.record_topics import find_missing_offsets
from fleetgauge_pipelines.io.stream_checkpoint import StreamGeneration
from fleetgauge_pipelines.jobs.stream_topics import (
    complete_starts,
    find_unreadable_topics,
    plan_generation,
)

FIRST = StreamGeneration(0, {"minutes": "a", "events": "b"})
POSITIONS = {"minutes": {0: 10, 1: 5}, "events": {0: 3}}
ENDS = {"minutes": {0: 12, 1: 5}, "events": {0: 3}}


def present(topic_id: str, *bounds: tuple[int, int]) -> PresentTopic:
    limits = {number: LogBounds(*bound) for number, bound in enumerate(bounds)}
    return PresentTopic(topic_id, frozenset(limits), limits)


def test_a_generation_goes_on_while_its_topics_are_the_same() -> None:
    same = {"minutes": present("a", (8, 40), (0, 5), (0, 2)), "events": present("b", (0, 1))}
    assert plan_generation(FIRST, POSITIONS, ENDS, same) is None


def test_a_recreated_topic_is_read_from_its_beginning_and_the_other_where_it_was() -> None:
    opened = plan_generation(
        FIRST, POSITIONS, ENDS, {"minutes": present("c", (0, 40), (0, 0)), "events": present("b", (0, 4))}
    )
    assert opened is not None
    assert opened.is_new
    assert opened.generation == StreamGeneration(
        1, {"minutes": "c", "events": "b"}, {"minutes": {0: 0, 1: 0}, "events": {0: 3}}
    )
    assert opened.generation.name == "stream-1"
    ((label, topic, change),) = opened.changes
    assert (label, topic, change.kind) == ("stream-1/start", "minutes", TopicChangeKind.RECREATED)
    assert (change.lost, change.is_exact) == ((OffsetGap(0, 10, 12),), False)


def test_the_other_topic_is_read_from_the_end_of_a_log_that_was_truncated() -> None:
    opened = plan_generation(
        FIRST, POSITIONS, ENDS, {"minutes": present("c", (0, 40)), "events": present("b", (0, 1))}
    )
    assert opened is not None
    assert opened.generation.starts == {"minutes": {0: 0}, "events": {0: 1}}
    kinds = {change.topic: change.change.kind for change in opened.changes}
    assert kinds == {"minutes": TopicChangeKind.RECREATED, "events": TopicChangeKind.TRUNCATED}


def test_a_topic_that_the_fleet_file_names_now_is_read_from_its_beginning_and_lost_nothing() -> None:
    opened = plan_generation(
        FIRST, POSITIONS, ENDS, {"renamed": present("c", (0, 40)), "events": present("b", (0, 4))}
    )
    assert opened is not None
    assert opened.changes == ()
    assert opened.generation.starts == {"renamed": {0: 0}, "events": {0: 3}}


def test_a_partition_without_a_leader_is_read_where_it_was_and_a_new_one_from_its_beginning() -> None:
    unled = PresentTopic("c", frozenset({0, 1}), {0: LogBounds(0, 40)})
    opened = plan_generation(
        FIRST, POSITIONS, ENDS, {"minutes": unled, "events": PresentTopic("b", frozenset({0}))}
    )
    assert opened is not None
    assert opened.generation.starts == {"minutes": {0: 0, 1: 0}, "events": {0: 3}}


def test_a_partition_that_was_added_before_the_query_began_gets_a_start() -> None:
    stored = StreamGeneration(1, {"minutes": "c", "events": "b"}, {"minutes": {0: 0}, "events": {0: 3}})
    extended = {"minutes": present("c", (0, 9), (0, 4)), "events": present("b", (0, 8))}
    assert plan_generation(stored, stored.starts, {}, extended) is None
    assert complete_starts(stored, extended).starts == {"minutes": {0: 0, 1: 0}, "events": {0: 3}}
    assert complete_starts(FIRST, extended) == FIRST


def test_topics_are_read_once_they_exist_and_every_partition_has_a_leader() -> None:
    unled = PresentTopic("a", frozenset({0, 1}), {0: LogBounds(0, 40)})
    assert find_unreadable_topics(("minutes", "events"), {"minutes": unled}) == [
        "no such topic: events",
        "no leader: partition 1 of minutes",
    ]
    assert find_unreadable_topics(("minutes",), {"minutes": present("a", (0, 1))}) == []


@given(st.integers(0, 5), st.sets(st.integers(0, 30)), st.integers(5, 30))
def test_missing_offsets_are_those_that_were_not_read(start: int, read: set[int], end: int) -> None:
    spans = find_missing_offsets(7, start, end, read)
    missing = [offset for span in spans for offset in range(span.start, span.end)]
    assert missing == [offset for offset in range(start, end) if offset not in read]
    assert all(span.partition == 7 for span in spans)
