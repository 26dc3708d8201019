"""Consumer groups: which there are, whether somebody reads in them, where they are, and moving them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, TopicPartition

from fleetgauge_probes.fleet import Access
from fleetgauge_probes.kafka.answered import admin_client, answered, unavailable
from fleetgauge_probes.kafka.layout import Place

#: Nobody reads in it, or it is not there: its offsets may be set.
_IDLE = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
#: What a broker answers about a group in which somebody reads after all.
_HAS_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS)


class GroupHasMembersError(Exception):
    """Somebody reads in the group, so that its offsets are theirs."""


@dataclass(frozen=True, slots=True)
class Committed:
    """``offset``: what the group reads next; ``metadata``: what whoever committed it wrote beside it."""

    offset: int
    metadata: str = ""


class Groups:
    """One cluster's. Every call ends within ``timeout_s`` or raises KafkaUnavailableError."""

    def __init__(self, access: Access, client_id: str, timeout_s: float = 10) -> None:
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets or certificates cannot be read."""
        self._client = admin_client(self._access, self._client_id)

    def names(self) -> frozenset[str]:
        """All of them; a coordinator that does not answer is an error, for its groups would be missing."""
        future = self._client.list_consumer_groups(request_timeout=self._timeout_s)
        found = answered(future, self._access, self._timeout_s)
        if found is None:
            return frozenset()
        if found.errors:
            raise unavailable(self._access, found.errors[0])
        return frozenset(one.group_id for one in found.valid)

    def connected(self, groups: Collection[str]) -> frozenset[str]:
        """Those of them in which somebody reads."""
        if not groups:
            return frozenset()
        futures = self._client.describe_consumer_groups(sorted(groups), request_timeout=self._timeout_s)
        seen = {
            group: answered(future, self._access, self._timeout_s, KafkaError.GROUP_ID_NOT_FOUND)
            for group, future in futures.items()
        }
        return frozenset(
            group for group, one in seen.items() if one and (one.members or one.state not in _IDLE)
        )

    def committed(self, group: str) -> dict[Place, Committed]:
        """Of each partition for which it has committed anything."""
        asked = [ConsumerGroupTopicPartitions(group)]
        futures = self._client.list_consumer_group_offsets(asked, request_timeout=self._timeout_s)
        found = answered(futures[group], self._access, self._timeout_s, KafkaError.GROUP_ID_NOT_FOUND)
        return {
            Place(one.topic, one.partition): Committed(one.offset, one.metadata or "")
            for one in (found.topic_partitions if found else ())
            if one.offset >= 0
        }

    def commit(self, group: str, offsets: Mapping[Place, Committed]) -> dict[Place, str]:
        """Let it read these next; by partition why not, of those that were refused.

        Raises GroupHasMembersError: a broker takes them from nobody who is not in it.
        """
        wanted = [TopicPartition(*place, one.offset, one.metadata) for place, one in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(group, wanted)]
        futures = self._client.alter_consumer_group_offsets(asked, request_timeout=self._timeout_s)
        done = answered(futures[group], self._access, self._timeout_s, *_HAS_MEMBERS)
        if done is None:
            raise GroupHasMembersError(group)
        refused = [one for one in done.topic_partitions if one.error]
        if any(one.error.code() in _HAS_MEMBERS for one in refused):
            raise GroupHasMembersError(group)
        return {Place(one.topic, one.partition): one.error.str() for one in refused}
