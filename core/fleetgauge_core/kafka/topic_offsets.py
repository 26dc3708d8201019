"""Topics as their logs are now: which there are, by which id, from where to where each reaches."""

from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.cluster_metadata import Place
from fleetgauge_core.kafka.librdkafka_admin import admin_client, answered, unavailable

_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)


@dataclass(frozen=True, slots=True)
class TopicId:
    """Another topic of the same name has another id. ``partitions``: those that have a leader."""

    topic_id: str
    partitions: tuple[int, ...]


class Extents:
    """One cluster's. Every call ends within ``timeout_s`` or raises KafkaUnavailableError."""

    def __init__(self, access: Access, client_id: str, timeout_s: float = 10) -> None:
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets or certificates cannot be read."""
        self._client = admin_client(self._access, self._client_id)

    def names(self) -> frozenset[str]:
        """All topics."""
        try:
            return frozenset(self._client.list_topics(timeout=self._timeout_s).topics)
        except KafkaException as error:
            raise unavailable(self._access, error.args[0]) from error

    def topics(self, names: Collection[str]) -> dict[str, TopicId]:
        """Those of them that there are."""
        if not names:
            return {}
        asked = TopicCollection(sorted(names))
        futures = self._client.describe_topics(asked, request_timeout=self._timeout_s)
        found = {
            name: answered(future, self._access, self._timeout_s, *_NOT_THERE)
            for name, future in futures.items()
        }
        return {
            name: TopicId(str(one.topic_id), tuple(sorted(part.id for part in one.partitions if part.leader)))
            for name, one in found.items()
            if one is not None
        }

    def led(self, places: Collection[Place]) -> tuple[Place, ...]:
        """Those of them that have a leader: of one without, librdkafka waits, and tells of none."""
        topics = self.topics({place.topic for place in places})
        return tuple(
            place
            for place in places
            if place.topic in topics and place.partition in topics[place.topic].partitions
        )

    def starts(self, places: Collection[Place]) -> dict[Place, int]:
        """The first offset that each keeps, of those that there are."""
        return self._offsets(places, OffsetSpec.earliest())

    def ends(self, places: Collection[Place]) -> dict[Place, int]:
        """The next offset that each will write, of those that there are."""
        return self._offsets(places, OffsetSpec.latest())

    def _offsets(self, places: Collection[Place], wanted: OffsetSpec) -> dict[Place, int]:
        if not places:
            return {}
        asked = {TopicPartition(*place): wanted for place in places}
        futures = self._client.list_offsets(asked, request_timeout=self._timeout_s)
        found = {
            Place(at.topic, at.partition): answered(future, self._access, self._timeout_s, *_NOT_THERE)
            for at, future in futures.items()
        }
        return {place: one.offset for place, one in found.items() if one is not None}
