"""Administration of a cluster's topics and configurations through librdkafka."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.errors import translate_librdkafka_errors, translate_librdkafka_request_error
from fleetgauge_core.kafka.librdkafka_admin import create_admin_client, wait_for_future
from fleetgauge_core.metadata import LogBounds, PartitionMetadata

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic's ID, and its partitions by number."""

    topic_id: str
    partitions: Mapping[int, PartitionMetadata]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create: with counts of partitions and replicas, or with an explicit replica assignment.

    A replication factor of -1 is the cluster's default. ``assignment`` lists the replicas of each partition.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 0
    replication_factor: int = 0
    assignment: Sequence[Sequence[int]] = ()


class ClusterAdmin:
    """A cluster's admin client.

    Every call ends within ``timeout_s`` and a second, or raises KafkaUnavailableError.
    """

    def __init__(self, access: ClusterAccess, timeout_s: float = 4) -> None:
        self._access = access
        self._timeout_s = timeout_s

    def start(self) -> None:
        """Create the client. Raises: KafkaUnavailableError if secrets cannot be read."""
        self._client = create_admin_client(self._access, "fleetgauge-admin")

    def describe_topic(self, name: str) -> TopicMetadata | None:
        """Return the topic's metadata, or None if it does not exist."""
        futures = self._client.describe_topics(TopicCollection([name]), request_timeout=self._timeout_s)
        with translate_librdkafka_errors(name):
            try:
                described = self._wait(futures[name])
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return None
                raise
        partitions = {partition.id: _parse_partition(partition) for partition in described.partitions}
        return TopicMetadata(str(described.topic_id), partitions)

    def read_log_bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, LogBounds]:
        """Return the bounds of these partitions of a topic; they must have leaders."""
        client_partitions = [TopicPartition(topic, partition) for partition in partitions]
        starts, ends = (
            self._client.list_offsets(dict.fromkeys(client_partitions, spec), request_timeout=self._timeout_s)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        with translate_librdkafka_errors(topic):
            return {
                partition.partition: LogBounds(
                    self._wait(starts[partition]).offset, self._wait(ends[partition]).offset
                )
                for partition in client_partitions
            }

    def create_topic(self, spec: TopicSpec) -> bool:
        """Create a topic; return False if it exists already."""
        placement: dict[str, Any] = (
            {"replica_assignment": [list(replicas) for replicas in spec.assignment]}
            if spec.assignment
            else {"replication_factor": spec.replication_factor}
        )
        new_topic = NewTopic(
            spec.name,
            num_partitions=len(spec.assignment) or spec.partitions,
            config=dict(spec.settings),
            **placement,
        )
        futures = self._client.create_topics([new_topic], request_timeout=self._timeout_s)
        return self._complete(futures[spec.name], KafkaError.TOPIC_ALREADY_EXISTS)

    def add_partitions(self, name: str, total: int, added: Sequence[Sequence[int]] = ()) -> None:
        """Increase the topic's partitions to ``total``.

        ``added`` lists the replicas of each new partition; without it the cluster assigns them.
        """
        assignment = ([list(replicas) for replicas in added],) if added else ()
        new_partitions = NewPartitions(name, total, *assignment)
        futures = self._client.create_partitions([new_partitions], request_timeout=self._timeout_s)
        self._complete(futures[name])

    def read_topic_setting(self, topic: str, key: str) -> str:
        """Return the effective value of a topic's setting."""
        return self._read_setting(ResourceType.TOPIC, topic, key) or ""

    def read_topic_settings(self, topic: str) -> dict[str, str]:
        """Return the effective values of all settings of a topic."""
        return {
            key: str(entry.value) for key, entry in self._describe_configs(ResourceType.TOPIC, topic).items()
        }

    def read_broker_setting(self, broker_id: int, key: str) -> str | None:
        """Return the value of a broker's setting, or None if it is unset. That broker must answer."""
        return self._read_setting(ResourceType.BROKER, str(broker_id), key)

    def _read_setting(self, resource_type: ResourceType, name: str, key: str) -> str | None:
        entry = self._describe_configs(resource_type, name).get(key)
        return str(entry.value) if entry else None

    def _describe_configs(self, resource_type: ResourceType, name: str) -> dict[str, ConfigEntry]:
        resource = ConfigResource(resource_type, name)
        return self._result(
            self._client.describe_configs([resource], request_timeout=self._timeout_s)[resource]
        )

    def set_topic_setting(self, topic: str, key: str, value: str | None) -> None:
        """Set a topic's setting; None removes it, so that the cluster's default applies."""
        self._write_setting(ResourceType.TOPIC, topic, key, value)

    def set_broker_setting(self, broker_id: int, key: str, value: str | None) -> None:
        """Set a broker's dynamic setting; None removes it. That broker must answer."""
        self._write_setting(ResourceType.BROKER, str(broker_id), key, value)

    def _write_setting(self, resource_type: ResourceType, name: str, key: str, value: str | None) -> None:
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        resource = ConfigResource(resource_type, name, incremental_configs=[entry])
        futures = self._client.incremental_alter_configs([resource], request_timeout=self._timeout_s)
        self._complete(futures[resource])

    def elect_preferred_leaders_of_topic(self, name: str, partitions: Iterable[int]) -> None:
        """Run a preferred leader election for these partitions of one topic."""
        self.elect_preferred_leaders((name, partition) for partition in partitions)

    def elect_preferred_leaders(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Run a preferred leader election for partitions, given as (topic, number).

        A partition whose preferred leader is not in sync keeps its leader.
        """
        client_partitions = [TopicPartition(*partition) for partition in partitions]
        # confluent-kafka 2.16 cannot parse this call's time-out options; socket.timeout.ms limits it.
        self._complete(self._client.elect_leaders(ElectionType.PREFERRED, client_partitions))

    def _complete(self, future: "Future[Any]", *accepted_codes: int) -> bool:
        """Wait for a request; return False if it fails with one of ``accepted_codes``."""
        try:
            self._wait(future)
        except KafkaException as error:
            if error.args[0].code() in accepted_codes:
                return False
            raise translate_librdkafka_request_error(error) from error
        return True

    def _result(self, future: "Future[T]") -> T:
        try:
            return self._wait(future)
        except KafkaException as error:
            raise translate_librdkafka_request_error(error) from error

    def _wait(self, future: "Future[T]") -> T:
        return wait_for_future(future, self._access, self._timeout_s)


def _parse_partition(described: Any) -> PartitionMetadata:
    has_leader = described.leader is not None and described.leader.id >= 0
    return PartitionMetadata(
        leader=int(described.leader.id) if has_leader else None,
        replicas=tuple(int(node.id) for node in described.replicas),
        in_sync=frozenset(int(node.id) for node in described.isr),
    )
