"""Topic IDs and the first and end offsets of partitions, read through librdkafka."""

from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import OffsetSpec

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.errors import translate_librdkafka_errors
from fleetgauge_core.kafka.librdkafka_admin import create_admin_client, wait_for_result
from fleetgauge_core.metadata import TopicPartition

_ABSENT_CODES = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """A topic's ID, which a recreated topic does not share, and its partitions with and without a leader."""

    topic_id: str
    partitions: tuple[int, ...]
    leaderless: tuple[int, ...] = ()


class TopicOffsets:
    """A client that reads offsets. Every call ends within ``timeout_s`` or raises KafkaUnavailableError."""

    def __init__(self, access: ClusterAccess, client_id: str, timeout_s: float = 10) -> None:
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s

    def start(self) -> None:
        """Create the client. Raises: KafkaUnavailableError if secrets or certificates cannot be read."""
        self._client = create_admin_client(self._access, self._client_id)

    def list_topic_names(self) -> frozenset[str]:
        """Return the names of all topics."""
        with translate_librdkafka_errors(self._access.bootstrap):
            return frozenset(self._client.list_topics(timeout=self._timeout_s).topics)

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicIdentity]:
        """Return the existing ones of these topics, by name."""
        if not names:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(sorted(names)), request_timeout=self._timeout_s
        )
        described_by_name = {
            name: wait_for_result(future, self._access, self._timeout_s, *_ABSENT_CODES)
            for name, future in futures.items()
        }
        return {
            name: TopicIdentity(
                str(described.topic_id),
                tuple(sorted(partition.id for partition in described.partitions if partition.leader)),
                tuple(sorted(partition.id for partition in described.partitions if not partition.leader)),
            )
            for name, described in described_by_name.items()
            if described is not None
        }

    def select_led_partitions(self, partitions: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Return those of the partitions that have a leader.

        Offsets must be requested for these only: librdkafka waits for a missing leader and then returns
        no offset at all.
        """
        topics = self.describe_topics({partition.topic for partition in partitions})
        return tuple(
            partition
            for partition in partitions
            if partition.topic in topics and partition.partition in topics[partition.topic].partitions
        )

    def read_start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offset of each existing partition."""
        return self._read_offsets(partitions, OffsetSpec.earliest())

    def read_end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the next record of each existing partition."""
        return self._read_offsets(partitions, OffsetSpec.latest())

    def _read_offsets(
        self, partitions: Collection[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        specs = {ClientTopicPartition(*partition): spec for partition in partitions}
        futures = self._client.list_offsets(specs, request_timeout=self._timeout_s)
        results = {
            TopicPartition(partition.topic, partition.partition): wait_for_result(
                future, self._access, self._timeout_s, *_ABSENT_CODES
            )
            for partition, future in futures.items()
        }
        return {partition: result.offset for partition, result in results.items() if result is not None}
