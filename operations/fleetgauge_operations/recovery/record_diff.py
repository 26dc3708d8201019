"""Compare the records of two logs by fingerprint."""

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import ConsumerRecord, read_record_range
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID

#: Maximum number of records on each side; larger ranges are reported as not compared.
MAX_COMPARED = 200_000

Fingerprint = bytes


def read_records(
    access: ClusterAccess, partition: TopicPartition, start: int, end: int
) -> Iterator[ConsumerRecord]:
    """Yield the records from offset ``start`` to before ``end``. Raises KafkaUnavailableError."""
    return read_record_range(access, partition.topic, partition.partition, range(start, end), CLIENT_ID)


def fingerprint_record(record: ConsumerRecord) -> Fingerprint:
    """Return a hash of the record's key, value and timestamp, which a mirror preserves."""
    key = record.key or b""
    text = b"%d %d " % (len(key), record.at_ms) + key + record.value
    return blake2b(text, digest_size=16).digest()


def count_fingerprints(records: Iterable[ConsumerRecord]) -> Counter[Fingerprint]:
    """Return how often each fingerprint occurs."""
    return Counter(map(fingerprint_record, records))
