"""Which Kafka cluster ID is believed for a cluster and a minute."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.jobs.cluster_consistency import (
    ClusterHistory,
    Period,
    RecordSummary,
    find_disputed_kafka_ids,
)

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
NEW_CLUSTER = ClusterHistory(Period(NOON, NOON))


def period(first: int, last: int) -> Period:
    return Period(NOON + timedelta(minutes=first), NOON + timedelta(minutes=last))


def summary(
    kafka_id: str, first: int, last: int, records: int = 10, brokers: Sequence[int] = (1,)
) -> RecordSummary:
    return RecordSummary("orders", kafka_id, records, period(first, last), frozenset(brokers))


def test_records_that_agree_are_not_disputed() -> None:
    history = NEW_CLUSTER.add_summaries([summary("a", 0, 20)])
    assert find_disputed_kafka_ids(history, [summary("a", 21, 22)]) == {}
    assert find_disputed_kafka_ids(NEW_CLUSTER, [summary("a", 0, 20)]) == {}


def test_another_id_is_disputed_while_the_known_one_has_records() -> None:
    history = NEW_CLUSTER.add_summaries([summary("a", 0, 20)])
    batch = [summary("b", 21, 22), summary("a", 21, 22, records=1)]
    assert find_disputed_kafka_ids(history, batch) == {"a": period(0, 22)}


def test_another_id_is_believed_two_minutes_after_the_last_record_of_the_known_one() -> None:
    history = NEW_CLUSTER.add_summaries([summary("a", 0, 20)])
    assert find_disputed_kafka_ids(history, [summary("b", 22, 31)])
    assert find_disputed_kafka_ids(history, [summary("b", 23, 40)]) == {}


def test_late_records_of_an_earlier_id_are_believed() -> None:
    history = NEW_CLUSTER.add_summaries([summary("b", 60, 80)])
    assert find_disputed_kafka_ids(history, [summary("a", 0, 20)]) == {}


def test_what_most_records_of_a_first_batch_name_is_believed() -> None:
    batch = [summary("b", 0, 3, records=1), summary("a", 0, 20)]
    assert find_disputed_kafka_ids(NEW_CLUSTER, batch) == {"a": period(0, 20)}


def test_an_earlier_id_that_comes_back_takes_nothing_from_the_one_that_followed() -> None:
    """As from an agent that was forgotten when the cluster was rebuilt, or that started first."""
    history = NEW_CLUSTER.add_summaries([summary("a", 0, 20)]).add_summaries([summary("b", 30, 60)])
    batch = [summary("a", 61, 62, records=99), summary("b", 61, 62, records=1)]
    assert find_disputed_kafka_ids(history, batch) == {"a": period(0, 20), "b": period(30, 62)}


def test_an_agent_that_knows_no_id_disputes_nothing() -> None:
    history = NEW_CLUSTER.add_summaries([summary("a", 0, 20), summary("", 0, 20, records=99)])
    assert list(history.kafka_ids) == ["a"]
    assert find_disputed_kafka_ids(history, [summary("", 5, 6)]) == {}


summaries = st.builds(
    lambda kafka_id, first, length, records: summary(kafka_id, first, first + length, records),
    st.sampled_from(["", "a", "b", "c"]),
    st.integers(0, 100),
    st.integers(0, 30),
    st.integers(1, 50),
)


@given(st.lists(st.lists(summaries, max_size=4, unique_by=lambda summary: summary.kafka_id), max_size=4))
def test_the_id_that_was_seen_last_is_never_disputed_by_another(batches: list[list[RecordSummary]]) -> None:
    history = NEW_CLUSTER
    for batch in batches:
        disputed = find_disputed_kafka_ids(history, batch)
        if disputed and history.kafka_ids:
            present = max(history.kafka_ids, key=lambda kafka_id: history.kafka_ids[kafka_id].last)
            assert disputed.keys() == history.kafka_ids.keys()
            for summary in batch:
                if summary.kafka_id == present:
                    assert disputed[present].first <= summary.period.first
                    assert summary.period.last <= disputed[present].last
        history = history.add_summaries(batch)
