"""The topic of changes: written by observers and reports, read by whoever lists changes."""

import logging
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import inf

from fleetgauge_core.contract import ClusterChange, RecordDecodeError
from fleetgauge_core.fleet import Cluster, Telemetry
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaUnavailableError,
    RecordProducer,
    keep_changes_topic,
    read_topic_values,
)

_log = logging.getLogger("fleetgauge.observe")

_CLIENT_ID = "fleetgauge-changes"
_DELIVERY_S = 10
_CHECK_TOPIC_EVERY_S = 60.0


def read_change_records(telemetry: Telemetry) -> tuple[ClusterChange, ...]:
    """Return the records of the topic; none if it does not exist yet. Raises: KafkaUnavailableError."""
    topic = telemetry.topics.changes.name
    admin = ClusterAdmin(telemetry.access)
    admin.start()
    if admin.describe_topic(topic) is None:
        return ()
    return tuple(_decode(read_topic_values(telemetry.access, topic, _CLIENT_ID)))


def _decode(values: Iterable[bytes]) -> Iterable[ClusterChange]:
    for value in values:
        try:
            yield ClusterChange.decode(value)
        except RecordDecodeError:
            _log.warning("a record of the topic of changes cannot be read, and is left out")


class ChangePublisher:
    """Writes reported changes, and waits until the telemetry cluster has them. For use by one thread."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._keeper = keep_changes_topic(telemetry)
        self._checked_s = -inf

    def publish(self, records: Sequence[ClusterChange]) -> None:
        """Write records. Raises: KafkaUnavailableError if the cluster does not have all within 10 s."""
        if time.monotonic() - self._checked_s > _CHECK_TOPIC_EVERY_S:
            self._keeper.ensure()
            self._checked_s = time.monotonic()
        producer = RecordProducer(self._telemetry.access, _CLIENT_ID, delivery_timeout_s=_DELIVERY_S)
        producer.start()
        for record in records:
            producer.send(self._telemetry.topics.changes.name, record.cluster_id or "", record.encode())
        if producer.stop(_DELIVERY_S) or producer.failed:
            # The topic may be gone.
            self._checked_s = -inf
            raise KafkaUnavailableError(
                f"{self._telemetry.access.bootstrap}: it has not stored what was reported: check the cluster"
                " and the WRITE permission"
            )


def select_lasting(records: Iterable[ClusterChange]) -> Sequence[ClusterChange]:
    """Return the latest record of each change that has not ended."""
    return [record for record in _select_latest(records) if record.ends is None]


def _select_latest(records: Iterable[ClusterChange]) -> Iterable[ClusterChange]:
    latest: dict[str, ClusterChange] = {}
    for record in records:
        earlier = latest.get(record.change_id)
        if earlier is None or record.at >= earlier.at:
            latest[record.change_id] = record
    return latest.values()


def select_changes(
    records: Iterable[ClusterChange], cluster: Cluster | None, since: datetime
) -> Sequence[ClusterChange]:
    """Return the latest record of each change that had not ended before a time, in order of their starts.

    Those of a cluster include those of its segments, and of the whole fleet.
    """
    selected = (
        record
        for record in _select_latest(records)
        if (cluster is None or _concerns(record, cluster)) and (record.ends is None or record.ends >= since)
    )
    return sorted(selected, key=lambda record: (record.starts, record.at, record.change_id))


def _concerns(record: ClusterChange, cluster: Cluster) -> bool:
    if record.cluster_id is not None:
        return record.cluster_id == cluster.id
    return (record.segment, record.segment_value) in cluster.segments
