"""Consumer groups: listing, membership, committed offsets and committing offsets.

This module uses kafka-python: librdkafka aborts the whole process when a hung group coordinator answers a
request late (confluentinc/librdkafka#5397).
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kafka import KafkaAdminClient, OffsetAndMetadata
from kafka import TopicPartition as ClientTopicPartition
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NoError,
    NonEmptyGroupError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.broker_registry import select_reachable_bootstrap
from fleetgauge_core.kafka.credentials import ensure_credentials_readable
from fleetgauge_core.kafka.errors import (
    KafkaRequestRejectedError,
    KafkaUnavailableError,
    translate_kafka_python_errors,
)
from fleetgauge_core.kafka.kafka_python_admin import connected_admin_client, wait_for_connection
from fleetgauge_core.metadata import TopicPartition

#: States of a group without members; its offsets may be altered. Dead means that the group does not exist.
_STATES_WITHOUT_MEMBERS = ("Empty", "Dead")
#: Errors of a commit from outside the group while the group has members.
_MEMBERSHIP_ERRORS = (UnknownMemberIdError, NonEmptyGroupError, RebalanceInProgressError)
#: Errors while a coordinator starts or moves; in a new cluster the first request creates the coordinators.
_COORDINATOR_ERRORS = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)
_RETRY_INTERVAL_S = 0.2
_GROUPS_PER_REQUEST = 500

T = TypeVar("T")


class GroupHasMembersError(Exception):
    """The group has members, so that only they may commit its offsets."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset that the group reads next, and the metadata that was committed with it."""

    offset: int
    metadata: str = ""


class ConsumerGroups:
    """A cluster's consumer groups, over one connection that is kept until a request fails.

    A broker that does not answer within ``timeout_s`` is an error, because its groups would be missing.
    """

    def __init__(self, access: ClusterAccess, client_id: str, timeout_s: float = 10) -> None:
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._connection = ExitStack()
        self._client: KafkaAdminClient | None = None

    def start(self) -> None:
        """Check the credentials. Raises: KafkaUnavailableError if a secret or certificate cannot be read."""
        ensure_credentials_readable(self._access)

    def stop(self) -> None:
        """Close the connection; the next request opens another."""
        self._client = None
        self._connection.close()

    def list_group_ids(self) -> frozenset[str]:
        """Return the IDs of all groups. Raises: KafkaUnavailableError."""
        return frozenset(self._read_states())

    def find_groups_with_members(self, groups: Collection[str]) -> frozenset[str]:
        """Return those of the groups that have members. Raises: KafkaUnavailableError."""
        states = self._read_states() if groups else {}
        return frozenset(
            group for group in groups if states.get(group, "Dead") not in _STATES_WITHOUT_MEMBERS
        )

    def read_committed_offsets(
        self, groups: Collection[str]
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """Return each group's committed offsets. Raises: KafkaUnavailableError.

        Groups that this client is not authorized to describe are omitted.
        """
        group_ids = sorted(groups)
        offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        for start in range(0, len(group_ids), _GROUPS_PER_REQUEST):
            offsets |= self._read_batch(group_ids[start : start + _GROUPS_PER_REQUEST])
        return offsets

    def _read_batch(self, groups: list[str]) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """Read several groups at once; read them one by one if one of them is rejected."""
        try:
            return self._request(partial(_list_offsets, groups))
        except KafkaRequestRejectedError:
            if len(groups) == 1:
                return {}
        return {group: offsets for name in groups for group, offsets in self._read_batch([name]).items()}

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, str]:
        """Set the group's committed offsets; return the error name of each partition that was rejected.

        Raises: GroupHasMembersError if the group has members, which are the only ones to commit then;
        KafkaUnavailableError.
        """
        client_offsets = {
            ClientTopicPartition(*partition): OffsetAndMetadata(committed.offset, committed.metadata, -1)
            for partition, committed in offsets.items()
        }
        errors = self._request(partial(_alter_offsets, group, client_offsets))
        if any(error in _MEMBERSHIP_ERRORS for error in errors.values()):
            raise GroupHasMembersError(group)
        return {
            TopicPartition(*partition): error.message
            for partition, error in errors.items()
            if error is not NoError
        }

    def _read_states(self) -> dict[str, str]:
        """Return the state of each group of either rebalance protocol (KIP-518, KIP-848)."""
        return {
            str(group["group_id"]): str(group["group_state"])
            for group in self._request(lambda admin: admin.list_groups())
        }

    def _request(self, send: Callable[[KafkaAdminClient], T]) -> T:
        """Return the result of ``send``, retried while the coordinator is not available.

        The connection is closed after a failure, because the client may have cached a former coordinator.
        """
        deadline_s = time.monotonic() + self._timeout_s
        try:
            with translate_kafka_python_errors(self._access.bootstrap):
                while True:
                    try:
                        return send(self._ensure_connected())
                    except _COORDINATOR_ERRORS:
                        if time.monotonic() > deadline_s:
                            raise
                        self.stop()
                        time.sleep(_RETRY_INTERVAL_S)
        except KafkaRequestRejectedError:
            # A rejection is a response: the connection works.
            raise
        except KafkaUnavailableError:
            self.stop()
            raise

    def _ensure_connected(self) -> KafkaAdminClient:
        if self._client is None:
            reachable = select_reachable_bootstrap(self._access)
            timeout_ms = round(1000 * self._timeout_s)
            client, network = self._connection.enter_context(
                connected_admin_client(reachable, self._client_id, timeout_ms, timeout_ms)
            )
            wait_for_connection(network)
            self._client = client
        return self._client


def _alter_offsets(
    group: str, offsets: Mapping[ClientTopicPartition, OffsetAndMetadata], admin: KafkaAdminClient
) -> dict[ClientTopicPartition, type[KafkaError]]:
    """Commit offsets; return the error of each partition. Raises: the coordinator's error, if it has one."""
    errors: dict[ClientTopicPartition, type[KafkaError]] = admin.alter_group_offsets(group, offsets)
    for error in errors.values():
        if error in _COORDINATOR_ERRORS:
            raise error
    return errors


def _list_offsets(
    groups: list[str], admin: KafkaAdminClient
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    return {
        group: {
            TopicPartition(*partition): CommittedOffset(offset.offset, offset.metadata or "")
            for partition, offset in offsets.items()
            if offset.offset >= 0
        }
        for group, offsets in admin.list_group_offsets(groups).items()
    }
