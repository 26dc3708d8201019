"""The only room that imports a Kafka client; everyone else sees these names.

librdkafka (confluent-kafka) carries the data and most of the administration;
kafka-python does what it alone can: who is fenced, the controller's clock, a topic's dry run, a move
of replicas.
"""

from fleetgauge_probes.kafka.admin import Admin, PartitionView, TopicSpec, TopicView
from fleetgauge_probes.kafka.answer import Answer, cold_answer
from fleetgauge_probes.kafka.consumer import Record, TopicReader
from fleetgauge_probes.kafka.errors import KafkaRefusedError, KafkaUnavailableError
from fleetgauge_probes.kafka.inquiry import Clock, Refusal, Rights, TopicSight, Unknown
from fleetgauge_probes.kafka.knock import Knock, Silence, Version
from fleetgauge_probes.kafka.look import Look, Sight, Target, look_at
from fleetgauge_probes.kafka.producer import ProbeProducer, RecordProducer, Route, SpoolProducer
from fleetgauge_probes.kafka.reassignment import reassign
from fleetgauge_probes.kafka.registry import Registration, Registry, registered_brokers
from fleetgauge_probes.kafka.telemetry import ensure_topics, telemetry_specs

__all__ = [
    "Admin",
    "Answer",
    "Clock",
    "KafkaRefusedError",
    "KafkaUnavailableError",
    "Knock",
    "Look",
    "PartitionView",
    "ProbeProducer",
    "Record",
    "RecordProducer",
    "Refusal",
    "Registration",
    "Registry",
    "Rights",
    "Route",
    "Sight",
    "Silence",
    "SpoolProducer",
    "Target",
    "TopicReader",
    "TopicSight",
    "TopicSpec",
    "TopicView",
    "Unknown",
    "Version",
    "cold_answer",
    "ensure_topics",
    "look_at",
    "reassign",
    "registered_brokers",
    "telemetry_specs",
]
