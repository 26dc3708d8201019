"""A reader that goes on when its topic is deleted, created anew, extended, or loses records.

One thread polls; another one calls ``check`` with what the cluster says of the topic, so that a slow cluster
delays no poll. Only the polling thread uses the consumer, because a call of another one blocks both. Offsets
are requested only after the polling thread was told that its position is not in the log.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event, Lock
from typing import Protocol

from confluent_kafka import KafkaError, Message, TopicPartition

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.cluster_admin import ClusterAdmin, TopicMetadata
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.renewal_times import RenewalTimes
from fleetgauge_core.kafka.topic_reader import ConsumerRecord, TopicReader
from fleetgauge_core.metadata import (
    ConfirmedTopicId,
    PresentTopic,
    TopicChange,
    TopicChangeKind,
    TopicSnapshot,
    find_topic_changes,
)

_log = logging.getLogger("fleetgauge.kafka")

_CHECK_INTERVAL_S = 5.0
_NOTE_ENDS_EVERY_S = 1.0

#: Called with every change, in the thread that checks.
ReportChange = Callable[[TopicChange], None]


class FollowedReader(TopicReader):
    """A reader of a topic whose changes it follows; records may be read again around a change."""

    def __init__(
        self,
        access: ClusterAccess,
        topic: str,
        client_id: str,
        report: ReportChange,
        earlier: TopicSnapshot | None = None,
        on_error: Callable[[int, str], None] | None = None,
        on_throttled: Callable[[int, float], None] | None = None,
    ) -> None:
        """``earlier`` is what another reader of this process knew, whose place this one takes."""
        super().__init__(access, topic, client_id, on_error, on_throttled)
        # A position outside of the log is for ``check`` to decide, and not for the client.
        self._settings |= {"auto.offset.reset": "error"}
        self._report = report
        self._lock = Lock()
        self._snapshot = earlier
        """The topic at the last check; positions are those of the reader before. None before the first."""
        self._partitions: set[int] = set()
        """Partitions that were assigned since the topic was created."""
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        """The ends of which the latest fetches told."""
        self._note_ends_at_s = 0.0
        self._outside: set[int] = set()
        """Partitions whose position is not in the log."""
        self._renewals = RenewalTimes()
        self._identity = ConfirmedTopicId(earlier.topic_id if earlier else None)

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self._topic

    def poll(self, timeout_s: float) -> ConsumerRecord | None:
        """Return the next record, or None if none arrives in time or the consumer reports an error."""
        if self._renewals.is_due(time.monotonic()):
            self._renewals.mark_done(time.monotonic())
            self._changes.append(self._renew_in_place)
        record = super().poll(timeout_s)
        if record:
            with self._lock:
                self._positions[record.partition] = record.offset + 1
        if time.monotonic() >= self._note_ends_at_s:
            self._note_ends_at_s = time.monotonic() + _NOTE_ENDS_EVERY_S
            self._note_ends()
        return record

    def _note_ends(self) -> None:
        """Note the ends that the consumer knows; this asks no broker."""
        for partition in self._assigned.values():
            bounds = self._consumer.get_watermark_offsets(partition, cached=True)
            if bounds and bounds[1] >= 0:
                with self._lock:
                    self._ends[partition.partition] = bounds[1]

    def _handle_error(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            # The next check reads on, and reports what was lost.
            with self._lock:
                self._outside.add(message.partition() or 0)
        else:
            super()._handle_error(message, error)

    def _renew_in_place(self) -> None:
        positions = dict(self._positions)
        self._replace_consumer()
        self._add_assignment([TopicPartition(self._topic, *position) for position in positions.items()])

    def _forget_assignments(self) -> None:
        super()._forget_assignments()
        with self._lock:
            for noted in (self._positions, self._ends, self._outside):
                noted.clear()

    def _add_assignment(self, partitions: list[TopicPartition]) -> None:
        super()._add_assignment(partitions)
        with self._lock:
            for partition in partitions:
                self._outside.discard(partition.partition)
                if partition.offset >= 0:
                    self._positions[partition.partition] = partition.offset
                else:
                    self._positions.pop(partition.partition, None)

    def assign_from(self, offsets: Mapping[int, int]) -> None:
        """Read partitions from these offsets, from the next poll on, whether or not they were read before."""
        with self._lock:
            self._partitions |= offsets.keys()
        super().assign_from(offsets)

    def check(self, topic: TopicMetadata | None, admin: ClusterAdmin) -> None:
        """Compare the topic with the last check, and read on where its changes say.

        ``topic`` is None if it does not exist. Raises: KafkaUnavailableError if offsets are needed and cannot
        be read; the next check tries again.
        """
        if not self._identity.check(topic.topic_id if topic else None):
            return
        with self._lock:
            outside, ends = frozenset(self._outside), dict(self._ends)
        earlier = self._take_snapshot(topic.topic_id if topic else None)
        present = None if topic is None else PresentTopic(topic.topic_id, frozenset(topic.partitions))
        if present and present.topic_id == earlier.topic_id and outside:
            bounds = admin.read_log_bounds(self._topic, outside & present.partitions)
            present = replace(present, bounds=bounds)
        changes = find_topic_changes(earlier, present)
        for change in changes:
            self._apply(change)
            self._report(change)
        if present and not changes:
            # A broker that had not caught up refused a position that is in the log.
            self._resume({partition: earlier.positions[partition] for partition in present.bounds})
        # Noted while the topic was the same: after a change the ends may be those of another log.
        self._snapshot = (
            TopicSnapshot(present.topic_id, ends=ends) if present else replace(earlier, is_deleted=True)
        )

    def _take_snapshot(self, topic_id: str | None) -> TopicSnapshot:
        """Return what is known of the topic, with the present positions if it was the same until now.

        The first topic, here with ``topic_id``, is the one of which the caller assigned partitions.
        """
        earlier = self._snapshot or TopicSnapshot(topic_id)
        is_same = earlier.topic_id == topic_id
        with self._lock:
            assigned = frozenset(self._partitions)
            if earlier.is_deleted and not (is_same and assigned):
                return earlier
            if earlier.positions and not is_same:
                return earlier
            return replace(earlier, partitions=assigned, positions=dict(self._positions), is_deleted=False)

    def snapshot(self) -> TopicSnapshot | None:
        """Return the topic as of the last check with the present positions, for a reader that follows."""
        with self._lock:
            if self._snapshot is None or self._snapshot.is_deleted:
                return self._snapshot
            return replace(self._snapshot, positions=dict(self._positions))

    def _apply(self, change: TopicChange) -> None:
        if change.kind is TopicChangeKind.DELETED:
            self.drop_assignments()
        elif change.kind is TopicChangeKind.RECREATED:
            self.renew()
            self._renewals.begin(time.monotonic())
            self._renewals.mark_done(time.monotonic())
        if change.kind in (TopicChangeKind.DELETED, TopicChangeKind.RECREATED):
            with self._lock:
                self._partitions.clear()
        self._resume(change.resume)

    def _resume(self, offsets: Mapping[int, int]) -> None:
        if offsets:
            with self._lock:
                self._outside -= offsets.keys()
            self.assign_from(offsets)


class TopicFollower(Protocol):
    """A user of a topic that has to be told when the topic changes."""

    @property
    def topic(self) -> str:
        """The name of the topic."""

    def check(self, topic: TopicMetadata | None, admin: ClusterAdmin) -> None:
        """Take note of the topic, None if it does not exist. Raises: KafkaUnavailableError."""


def follow_topics(access: ClusterAccess, followers: Sequence[TopicFollower], stopping: Event) -> None:
    """Check the topics of one cluster's followers until ``stopping`` is set."""
    admin = ClusterAdmin(access)
    is_started = False
    while not stopping.is_set():
        try:
            if not is_started:
                admin.start()
                is_started = True
            for follower in followers:
                follower.check(admin.describe_topic(follower.topic), admin)
        except KafkaUnavailableError as error:
            _log.debug("%s: topics cannot be checked: %s", access.bootstrap, error)
        stopping.wait(_CHECK_INTERVAL_S)
