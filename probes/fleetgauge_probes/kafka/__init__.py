"""The only room that imports a Kafka client; everyone else sees these names.

librdkafka (confluent-kafka) carries the data and most of the administration;
kafka-python is used for the one thing it alone can do here, listing fenced brokers.
"""

from fleetgauge_probes.kafka.admin import Admin, PartitionView, TopicSpec, TopicView
from fleetgauge_probes.kafka.answer import Answer, cold_answer
from fleetgauge_probes.kafka.consumer import Record, TopicReader
from fleetgauge_probes.kafka.errors import KafkaUnavailableError
from fleetgauge_probes.kafka.producer import ProbeProducer, RecordProducer, Route
from fleetgauge_probes.kafka.registry import Registration, Registry, registered_brokers
from fleetgauge_probes.kafka.telemetry import ensure_topics

__all__ = [
    "Admin",
    "Answer",
    "KafkaUnavailableError",
    "PartitionView",
    "ProbeProducer",
    "Record",
    "RecordProducer",
    "Registration",
    "Registry",
    "Route",
    "TopicReader",
    "TopicSpec",
    "TopicView",
    "cold_answer",
    "ensure_topics",
    "registered_brokers",
]
