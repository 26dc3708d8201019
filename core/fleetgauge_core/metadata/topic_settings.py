"""The settings of every topic that Fleetgauge creates, so that no default of a cluster applies to them.

A cluster's defaults may compact a topic without keys, delete records before they are read, or reject
batches; and they may change at any time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MIN_IN_SYNC = "min.insync.replicas"

_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
#: Retention deletes whole segments, so a segment spans a small part of the retention time.
_SEGMENTS_PER_RETENTION = 24
_MIN_SEGMENT_MS = 10 * _MINUTE_MS
#: Providers of managed clusters accept 50 MiB or more.
_SEGMENT_BYTES = 64 * 1024 * 1024
#: The limit of a batch of records: Kafka's own default, above the largest batch of our producers.
_MAX_MESSAGE_BYTES = 1_048_588
_UNLIMITED = "-1"


def compute_min_in_sync(replication_factor: int) -> int:
    """Return the min.insync.replicas of a topic that stays writable without one of its replicas."""
    return max(1, replication_factor - 1)


def build_log_settings(retention_ms: int, replication_factor: int) -> dict[str, str]:
    """Return the settings of a topic whose records are deleted after ``retention_ms``."""
    segment_ms = min(max(retention_ms // _SEGMENTS_PER_RETENTION, _MIN_SEGMENT_MS), _DAY_MS)
    return _build_settings("delete", str(retention_ms), segment_ms, replication_factor)


def build_state_settings(replication_factor: int) -> dict[str, str]:
    """Return the settings of a topic that keeps the last record of each key."""
    return _build_settings("compact", _UNLIMITED, _DAY_MS, replication_factor)


def _build_settings(
    cleanup_policy: str, retention_ms: str, segment_ms: int, replication_factor: int
) -> dict[str, str]:
    return {
        "cleanup.policy": cleanup_policy,
        "retention.ms": retention_ms,
        "retention.bytes": _UNLIMITED,
        "segment.ms": str(segment_ms),
        "segment.bytes": str(_SEGMENT_BYTES),
        "max.message.bytes": str(_MAX_MESSAGE_BYTES),
        MIN_IN_SYNC: str(compute_min_in_sync(replication_factor)),
    }


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting of an existing topic that is not as specified."""

    key: str
    actual: str
    specified: str

    def __str__(self) -> str:
        """Describe the difference for log lines."""
        return f"{self.key}={self.actual} instead of {self.specified}"


def find_differences(
    specified: Mapping[str, str], actual: Mapping[str, str], replica_counts: Iterable[int] = ()
) -> tuple[SettingDifference, ...]:
    """Return the settings that differ; settings that could not be read are not among them.

    ``replica_counts`` are those of the topic's partitions: the lowest one decides min.insync.replicas,
    because an existing topic may have fewer replicas than specified.
    """
    fewest = min(replica_counts, default=None)
    wanted = dict(specified)
    if fewest is not None and MIN_IN_SYNC in wanted:
        wanted[MIN_IN_SYNC] = str(compute_min_in_sync(fewest))
    return tuple(
        SettingDifference(key, actual[key], value)
        for key, value in wanted.items()
        if key in actual and actual[key] != value
    )
