"""A topic as it is now."""

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import values_now


def values_on(access: Access, topic: str, timeout_s: float = 30) -> list[bytes]:
    """Every value, a partition's in their order. Raises KafkaUnavailableError."""
    return list(values_now(access, topic, "fleetgauge-tests", timeout_s=timeout_s))
