"""A topic as it is now."""

from fleetgauge_probes.kafka import TopicReader


def values_on(bootstrap: str, topic: str, timeout_s: float = 30) -> list[bytes]:
    """Every value, a partition's in their order. Raises KafkaUnavailableError."""
    reader = TopicReader(bootstrap, topic, "fleetgauge-tests")
    reader.start()
    try:
        partitions = reader.partitions()
        reader.add(partitions, from_beginning=True)
        return [record.value for record in reader.until(reader.ends(partitions), timeout_s)]
    finally:
        reader.stop()
