"""Where replicas lie: who is being moved, and whom to move (KIP-455). librdkafka cannot ask either."""

from collections.abc import Mapping, Sequence

from kafka import TopicPartition
from kafka.errors import KafkaError

from fleetgauge_probes.fleet import Access
from fleetgauge_probes.kafka.asking import asking
from fleetgauge_probes.kafka.errors import KafkaUnavailableError, unavailable

_TIMEOUT_MS = 4000


def reassign(access: Access, topic: str, replicas: Mapping[int, Sequence[int]]) -> bool:
    """Let these be the replicas, by partition; False, nothing done, while any of the topic is moving.

    Raises KafkaUnavailableError, KafkaRefusedError.
    """
    wanted = {TopicPartition(topic, number): list(brokers) for number, brokers in replicas.items()}
    try:
        with asking(access, "fleetgauge-reassign", _TIMEOUT_MS, 2 * _TIMEOUT_MS) as (admin, _):
            moving = admin.list_partition_reassignments(timeout_ms=_TIMEOUT_MS)
            if any(one.topic == topic for one in moving):
                return False
            errors = admin.alter_partition_reassignments(wanted, timeout_ms=_TIMEOUT_MS)
    except KafkaError as error:
        # An answer's error has both; in words it would repeat the request.
        name, words = getattr(error, "message", "NO_ANSWER"), getattr(error, "description", str(error))
        raise unavailable(name, words) from error
    except OSError as error:
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}") from error
    for partition, refusal in errors.items():
        if refusal is not None:
            raise unavailable(refusal.message, f"partition {partition.partition}: {refusal.description}")
    return True
