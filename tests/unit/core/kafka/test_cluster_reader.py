"""Which broker an observation is read from, and what a list that lacks a topic means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from fleetgauge_core.fleet import NO_SECURITY, ClusterAccess
from fleetgauge_core.kafka.cluster_queries import QueryFailure
from fleetgauge_core.kafka.cluster_reader import ClusterReader
from fleetgauge_core.kafka.directed_client import _NoAnswer
from fleetgauge_core.kafka.errors import KafkaUnavailableError

UNKNOWN, UNAUTHORIZED = 3, 29
NO_ANSWER = _NoAnswer("no answer within 4 s")


@dataclass
class Brokers:
    """Brokers that answer from memory; ``offsets`` is how far each has followed the metadata log."""

    offsets: dict[int, int]
    topics: dict[str, int] = field(default_factory=dict)
    """The error code of each topic; those without an error are listed."""
    silent: set[int] = field(default_factory=set)
    uuid: str = "uuid"
    asked: list[int] = field(default_factory=list)

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.offsets))

    def adopt_brokers(self, metadata: Any) -> None:
        pass

    def request(self, broker_id: int, request: Any) -> Any:
        response = self._answer(broker_id, request)
        if response is NO_ANSWER:
            raise KafkaUnavailableError(f"broker {broker_id}: no answer")
        return response

    def request_all(self, requests: Mapping[int, Any], grace_s: float | None = None) -> dict[int, Any]:
        return {broker_id: self._answer(broker_id, request) for broker_id, request in requests.items()}

    def _answer(self, broker_id: int, request: Any) -> Any:
        if broker_id in self.silent:
            return NO_ANSWER
        if isinstance(request, ApiVersionsRequest):
            return SimpleNamespace(finalized_features_epoch=self.offsets[broker_id], finalized_features=[])
        if isinstance(request, DescribeClusterRequest):
            self.asked.append(broker_id)
            brokers = [
                SimpleNamespace(broker_id=number, host="h", port=9092, rack=None, is_fenced=False)
                for number in self.offsets
            ]
            return SimpleNamespace(error_code=0, cluster_id=self.uuid, brokers=brokers, API_VERSION=2)
        if isinstance(request, MetadataRequest):
            return SimpleNamespace(topics=self._list_topics(request))
        return QueryFailure("not asked in this test")

    def _list_topics(self, request: MetadataRequest) -> list[Any]:
        named = None if request.topics is None else {topic.name for topic in request.topics}
        return [
            SimpleNamespace(name=name, topic_id=UUID(int=1), partitions=[], error_code=code)
            for name, code in self.topics.items()
            if (code == 0 if named is None else name in named)
        ]


def read_from(brokers: Brokers) -> ClusterReader:
    access = ClusterAccess("127.0.0.1:1", NO_SECURITY)
    reader = ClusterReader(access, lambda: datetime(2026, 3, 2, tzinfo=UTC))
    reader._client = brokers
    return reader


def test_the_most_advanced_broker_is_asked_and_then_the_same_one_while_it_goes_on() -> None:
    brokers = Brokers({1: 100, 2: 103, 3: 101})
    reader = read_from(brokers)
    for _ in range(3):
        reader.read()
        brokers.offsets = {number: offset + 10 for number, offset in brokers.offsets.items()}
        brokers.offsets[3] += 5
    assert brokers.asked == [2, 2, 2]


def test_a_broker_that_stands_still_between_two_whole_looks_is_left_for_one_that_does_not() -> None:
    brokers = Brokers({1: 100, 2: 90})
    reader = read_from(brokers)
    reader.read()
    brokers.offsets[2] = 120
    # A look at the brokers alone may follow within the time of one record.
    assert reader.read_brokers().brokers is not None
    reader.read()
    assert brokers.asked == [1, 1, 2]


def test_a_broker_that_does_not_answer_or_has_fallen_behind_is_left() -> None:
    brokers = Brokers({1: 100, 2: 99})
    reader = read_from(brokers)
    reader.read()
    brokers.silent, brokers.offsets[2] = {1}, 110
    reader.read()
    brokers.silent, brokers.offsets = set(), {1: 130, 2: 50}
    reader.read()
    assert brokers.asked == [1, 2, 1]


def test_an_observation_is_never_older_than_the_one_before_unless_the_cluster_is_another() -> None:
    brokers = Brokers({1: 100, 2: 100})
    reader = read_from(brokers)
    reader.read()
    brokers.offsets = {1: 80, 2: 90}
    with pytest.raises(KafkaUnavailableError, match="no broker that answers is as current"):
        reader.read()
    brokers.uuid = "made-anew"
    assert reader.read().kafka_cluster_uuid == "made-anew"


def test_a_topic_that_may_not_be_described_any_more_is_hidden_and_one_that_is_unknown_is_gone() -> None:
    brokers = Brokers({1: 100}, {"kept": 0, "hidden": 0, "deleted": 0})
    reader = read_from(brokers)
    assert set(reader.read().topics or ()) == {"kept", "hidden", "deleted"}
    brokers.offsets[1], brokers.topics = 110, {"kept": 0, "hidden": UNAUTHORIZED, "deleted": UNKNOWN}
    for _ in range(2):
        brokers.offsets[1] += 1
        observation = reader.read()
        assert (set(observation.topics or ()), observation.hidden_topics) == ({"kept"}, {"hidden"})
        assert observation.failures["topics"] == "this client may not describe 1 topics any more"


def test_of_many_topics_the_settings_of_every_other_one_are_read_in_turn() -> None:
    reader = read_from(Brokers({1: 100}))
    few, many = [f"t{number}" for number in range(500)], [f"t{number}" for number in range(501)]
    assert reader._select_topics(few) == sorted(few)
    first, second = reader._select_topics(many), reader._select_topics(many)
    assert (sorted([*first, *second]), len(first) + len(second)) == (sorted(many), 501)
