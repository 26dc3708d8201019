"""A topic as it is now."""

from fleetgauge_probes.fleet import Access
from fleetgauge_probes.kafka import TopicReader


def values_on(access: Access, topic: str, timeout_s: float = 30) -> list[bytes]:
    """Every value, a partition's in their order. Raises KafkaUnavailableError."""
    reader = TopicReader(access, topic, "fleetgauge-tests")
    reader.start()
    try:
        partitions = reader.partitions()
        reader.add(partitions, from_beginning=True)
        return [record.value for record in reader.until(reader.ends(partitions), timeout_s)]
    finally:
        reader.stop()
