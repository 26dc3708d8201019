"""Consumer groups: which there are, whether somebody reads in them, where they are, and moving them.

Asked through kafka-python: librdkafka's client aborts the whole process when a group's coordinator that hung
answers after all (confluentinc/librdkafka#5397).
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
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

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.broker_registry import open_doors
from fleetgauge_core.kafka.cluster_metadata import Place
from fleetgauge_core.kafka.credentials import ensure_usable
from fleetgauge_core.kafka.errors import KafkaRefusedError, KafkaUnavailableError
from fleetgauge_core.kafka.kafka_python_admin import asking, in_our_words, settle

#: Nobody reads in it, or it is not there: its offsets may be set.
_IDLE = ("Empty", "Dead")
#: What a broker answers about a group in which somebody reads after all.
_HAS_MEMBERS = (UnknownMemberIdError, NonEmptyGroupError, RebalanceInProgressError)
#: Of a coordinator that comes, or has gone elsewhere: in a new cluster the first question makes all of them.
_SOON = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)
_ASKED_AGAIN_S = 0.2
#: In one request.
_AT_ONCE = 500

T = TypeVar("T")


class GroupHasMembersError(Exception):
    """Somebody reads in the group, so that its offsets are theirs."""


@dataclass(frozen=True, slots=True)
class Committed:
    """``offset``: what the group reads next; ``metadata``: what whoever committed it wrote beside it."""

    offset: int
    metadata: str = ""


class Groups:
    """One cluster's, over a connection that is kept until a question fails.

    A broker that does not answer within ``timeout_s`` is an error, for its groups would be missing.
    """

    def __init__(self, access: Access, client_id: str, timeout_s: float = 10) -> None:
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._connection = ExitStack()
        self._client: KafkaAdminClient | None = None

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets or certificates cannot be read."""
        ensure_usable(self._access)

    def stop(self) -> None:
        self._client = None
        self._connection.close()

    def names(self) -> frozenset[str]:
        """All of them. Raises KafkaUnavailableError."""
        return frozenset(self._states())

    def connected(self, groups: Collection[str]) -> frozenset[str]:
        """Those of them in which somebody reads. Raises KafkaUnavailableError."""
        states = self._states() if groups else {}
        return frozenset(group for group in groups if states.get(group, "Dead") not in _IDLE)

    def committed(self, groups: Collection[str]) -> dict[str, dict[Place, Committed]]:
        """By group, of each partition for which it has committed anything. Raises KafkaUnavailableError.

        Groups that we may not ask for are left out.
        """
        wanted = sorted(groups)
        found: dict[str, dict[Place, Committed]] = {}
        for first in range(0, len(wanted), _AT_ONCE):
            found |= self._committed(wanted[first : first + _AT_ONCE])
        return found

    def _committed(self, groups: list[str]) -> dict[str, dict[Place, Committed]]:
        """One that is refused refuses all that are asked for with it, so then each is asked for by itself."""
        try:
            return self._told(partial(_committed, groups))
        except KafkaRefusedError:
            if len(groups) == 1:
                return {}
        return {group: one for name in groups for group, one in self._committed([name]).items()}

    def commit(self, group: str, offsets: Mapping[Place, Committed]) -> dict[Place, str]:
        """Let it read these next; by partition why not, of those that were refused.

        Raises GroupHasMembersError: a broker takes them from nobody who is not in it; KafkaUnavailableError.
        """
        wanted = {
            TopicPartition(*place): OffsetAndMetadata(one.offset, one.metadata, -1)
            for place, one in offsets.items()
        }
        errors = self._told(partial(_altered, group, wanted))
        if any(error in _HAS_MEMBERS for error in errors.values()):
            raise GroupHasMembersError(group)
        return {Place(*place): error.message for place, error in errors.items() if error is not NoError}

    def _states(self) -> dict[str, str]:
        """Of each group that its coordinator knows; those of both protocols (KIP-518, KIP-848)."""
        return {
            str(one["group_id"]): str(one["group_state"])
            for one in self._told(lambda admin: admin.list_groups())
        }

    def _told(self, question: Callable[[KafkaAdminClient], T]) -> T:
        """The answer. A connection that failed in anything is ended: it may know a coordinator that is none.

        Of one that is to come nothing tells when it has: it is asked for again after a while.
        """
        until_s = time.monotonic() + self._timeout_s
        try:
            with in_our_words(self._access):
                while True:
                    try:
                        return question(self._connected())
                    except _SOON:
                        if time.monotonic() > until_s:
                            raise
                        self.stop()
                        time.sleep(_ASKED_AGAIN_S)
        except KafkaRefusedError:
            # An answer like any other: the connection is good.
            raise
        except KafkaUnavailableError:
            self.stop()
            raise

    def _connected(self) -> KafkaAdminClient:
        if self._client is None:
            doors = open_doors(self._access)
            timeout_ms = round(1000 * self._timeout_s)
            client, network = self._connection.enter_context(
                asking(doors, self._client_id, timeout_ms, timeout_ms)
            )
            settle(network)
            self._client = client
        return self._client


def _altered(
    group: str, wanted: Mapping[TopicPartition, OffsetAndMetadata], admin: KafkaAdminClient
) -> dict[TopicPartition, type[KafkaError]]:
    """An error of the coordinator's, which comes with each partition, is raised as it is elsewhere."""
    errors: dict[TopicPartition, type[KafkaError]] = admin.alter_group_offsets(group, wanted)
    for error in errors.values():
        if error in _SOON:
            raise error
    return errors


def _committed(groups: list[str], admin: KafkaAdminClient) -> dict[str, dict[Place, Committed]]:
    return {
        group: {
            Place(*place): Committed(one.offset, one.metadata or "")
            for place, one in offsets.items()
            if one.offset >= 0
        }
        for group, offsets in admin.list_group_offsets(groups).items()
    }
