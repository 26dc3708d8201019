"""The ends of logs, record by record: what a copy has of them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import Place, Record, records_between
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID

#: So many on each side; more is said not to have been compared.
COMPARED_AT_MOST = 200_000

Fingerprint = bytes


def records(access: Access, place: Place, start: int, end: int) -> Iterator[Record]:
    """Those from ``start`` to before ``end``. Raises KafkaUnavailableError."""
    return records_between(access, place.topic, place.partition, range(start, end), CLIENT_ID)


def fingerprint(record: Record) -> Fingerprint:
    """A mirror keeps a record's key, value and time."""
    key = record.key or b""
    text = b"%d %d " % (len(key), record.at_ms) + key + record.value
    return blake2b(text, digest_size=16).digest()


def counted(found: Iterable[Record]) -> Counter[Fingerprint]:
    return Counter(map(fingerprint, found))
