"""Topics: look, create, widen, elect, set."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka
from fleetgauge_core.kafka.errors import KafkaUnavailableError, code, unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as the cluster's metadata has it. ``leader`` is None where there is none."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic; partitions by number."""

    topic_id: str
    partitions: Mapping[int, PartitionView]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to make: either a count of partitions and a replication factor, or every replica by hand.

    A replication factor of -1 is the cluster's own.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 0
    replication_factor: int = 0
    assignment: Sequence[Sequence[int]] = ()


class Admin:
    """One cluster's topics. Every call ends within ``timeout_s`` or raises KafkaUnavailableError."""

    def __init__(self, access: Access, timeout_s: float = 4) -> None:
        self._access = access
        self._timeout_s = timeout_s

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._client = AdminClient(
            client_settings.CONNECTION | for_librdkafka(self._access) | {"client.id": "fleetgauge-admin"}
        )

    def topic(self, name: str) -> TopicView | None:
        """The topic, or None where it does not exist."""
        futures = self._client.describe_topics(TopicCollection([name]), request_timeout=self._timeout_s)
        try:
            found = self._result(futures[name])
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise KafkaUnavailableError(f"{name}: {error.args[0].str()}") from error
        return TopicView(str(found.topic_id), {p.id: _partition(p) for p in found.partitions})

    def brokers(self) -> tuple[int, ...]:
        """The live brokers' ids (fenced ones are not among them)."""
        try:
            metadata = self._client.list_topics(timeout=self._timeout_s)
        except KafkaException as error:
            raise KafkaUnavailableError(f"{self._access.bootstrap}: {error.args[0].str()}") from error
        return tuple(sorted(metadata.brokers))

    def create(self, spec: TopicSpec) -> bool:
        """Make a topic; False where somebody else had made it."""
        placed: dict[str, Any] = (
            {"replica_assignment": [list(replicas) for replicas in spec.assignment]}
            if spec.assignment
            else {"replication_factor": spec.replication_factor}
        )
        topic = NewTopic(
            spec.name,
            num_partitions=len(spec.assignment) or spec.partitions,
            config=dict(spec.settings),
            **placed,
        )
        return self._done(
            self._client.create_topics([topic], request_timeout=self._timeout_s)[spec.name],
            KafkaError.TOPIC_ALREADY_EXISTS,
        )

    def widen(self, name: str, total: int, added: Sequence[Sequence[int]] = ()) -> None:
        """Add partitions up to ``total``, with the given replicas or where the cluster places them."""
        placed = ([list(replicas) for replicas in added],) if added else ()
        wider = NewPartitions(name, total, *placed)
        self._done(self._client.create_partitions([wider], request_timeout=self._timeout_s)[name])

    def setting(self, topic: str, key: str) -> str:
        """The present value of one of a topic's settings."""
        return self._setting(ResourceType.TOPIC, topic, key) or ""

    def setting_of_broker(self, broker_id: int, key: str) -> str | None:
        """That of a broker's, None where nobody has set it. The broker itself must answer."""
        return self._setting(ResourceType.BROKER, str(broker_id), key)

    def _setting(self, kind: ResourceType, name: str, key: str) -> str | None:
        resource = ConfigResource(kind, name)
        future = self._client.describe_configs([resource], request_timeout=self._timeout_s)[resource]
        found = self._answer(future).get(key)
        return str(found.value) if found else None

    def set(self, topic: str, key: str, value: str | None) -> None:
        """Change one of a topic's settings; None gives it back to the cluster."""
        self._set(ResourceType.TOPIC, topic, key, value)

    def set_of_broker(self, broker_id: int, key: str, value: str | None) -> None:
        """Change one of a broker's settings; None gives it back. The broker itself must answer."""
        self._set(ResourceType.BROKER, str(broker_id), key, value)

    def _set(self, kind: ResourceType, name: str, key: str, value: str | None) -> None:
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        self._done(
            self._client.incremental_alter_configs([resource], request_timeout=self._timeout_s)[resource]
        )

    def elect_preferred(self, name: str, partitions: Iterable[int]) -> None:
        """As ``elect_all_preferred``, of one topic."""
        self.elect_all_preferred((name, partition) for partition in partitions)

    def elect_all_preferred(self, places: Iterable[tuple[str, int]]) -> None:
        """Let the first replica of each, by topic and number, lead; one that cannot is left as it is."""
        wanted = [TopicPartition(*place) for place in places]
        # Without its time-out options: confluent-kafka 2.16 cannot parse them. socket.timeout.ms bounds it.
        self._done(self._client.elect_leaders(ElectionType.PREFERRED, wanted))

    def _done(self, future: "Future[Any]", *fine: int) -> bool:
        try:
            self._result(future)
        except KafkaException as error:
            if error.args[0].code() in fine:
                return False
            raise _unavailable(error) from error
        return True

    def _answer(self, future: "Future[T]") -> T:
        try:
            return self._result(future)
        except KafkaException as error:
            raise _unavailable(error) from error

    def _result(self, future: "Future[T]") -> T:
        try:
            return future.result(self._timeout_s + 1)
        except (TimeoutError, FutureTimeoutError) as error:
            raise KafkaUnavailableError(
                f"{self._access.bootstrap}: no answer within {self._timeout_s:g} s"
            ) from error


def _unavailable(error: KafkaException) -> KafkaUnavailableError:
    return unavailable(code(error.args[0]), error.args[0].str())


def _partition(found: Any) -> PartitionView:
    leader = None if found.leader is None or found.leader.id < 0 else int(found.leader.id)
    return PartitionView(
        leader=leader,
        replicas=tuple(int(node.id) for node in found.replicas),
        in_sync=frozenset(int(node.id) for node in found.isr),
    )
