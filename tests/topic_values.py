"""Reads all values of a topic, for tests."""

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import read_topic_values


def read_values(access: ClusterAccess, topic: str, timeout_s: float = 30) -> list[bytes]:
    """Return all values up to the present end; values of a partition keep their order."""
    return list(read_topic_values(access, topic, "fleetgauge-tests", timeout_s=timeout_s))
