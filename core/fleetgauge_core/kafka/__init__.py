"""The only room that imports a Kafka client; everyone else sees these names.

librdkafka (confluent-kafka) carries the data and most of the administration;
kafka-python does what it alone can: who is fenced, the controller's clock, a topic's dry run, a move
of replicas.
"""

from fleetgauge_core.kafka.admin import (
    Admin,
    PartitionView,
    TopicSpec,
    TopicView,
)
from fleetgauge_core.kafka.broker_registry import Registration, Registry, registered_brokers
from fleetgauge_core.kafka.cluster_inspection import (
    Look,
    Sight,
    Target,
    look_at,
)
from fleetgauge_core.kafka.cluster_metadata import (
    THROTTLED_RATE,
    THROTTLED_REPLICAS,
    Layout,
    Place,
    read_layout,
)
from fleetgauge_core.kafka.cluster_queries import (
    Clock,
    Refusal,
    Rights,
    TopicSight,
    Unknown,
)
from fleetgauge_core.kafka.cold_bootstrap import Bootstrap, cold_bootstrap
from fleetgauge_core.kafka.cold_connection import Answer, cold_answer
from fleetgauge_core.kafka.connection_failure import Silence
from fleetgauge_core.kafka.consumer import (
    Record,
    TopicReader,
    records_between,
    values_now,
)
from fleetgauge_core.kafka.credentials import ensure_usable, tls_context
from fleetgauge_core.kafka.demotions import demoted_now, mark_demoted
from fleetgauge_core.kafka.endpoint_probe import Knock, Reply, Version
from fleetgauge_core.kafka.errors import (
    AUTHENTICATION,
    KafkaRefusedError,
    KafkaTurnedAwayError,
    KafkaUnavailableError,
)
from fleetgauge_core.kafka.groups import Committed, GroupHasMembersError, Groups
from fleetgauge_core.kafka.leader_election import Seat, Standing, Term
from fleetgauge_core.kafka.producer import (
    Delivery,
    ProbeProducer,
    RecordProducer,
    Route,
    SpoolProducer,
    TracerProducer,
)
from fleetgauge_core.kafka.reassignment import reassign, reorder_all
from fleetgauge_core.kafka.telemetry_topics import ensure_state_topic, ensure_topics, telemetry_specs
from fleetgauge_core.kafka.topic_offsets import Extents, TopicId

__all__ = [
    "AUTHENTICATION",
    "THROTTLED_RATE",
    "THROTTLED_REPLICAS",
    "Admin",
    "Answer",
    "Bootstrap",
    "Clock",
    "Committed",
    "Delivery",
    "Extents",
    "GroupHasMembersError",
    "Groups",
    "KafkaRefusedError",
    "KafkaTurnedAwayError",
    "KafkaUnavailableError",
    "Knock",
    "Layout",
    "Look",
    "PartitionView",
    "Place",
    "ProbeProducer",
    "Record",
    "RecordProducer",
    "Refusal",
    "Registration",
    "Registry",
    "Reply",
    "Rights",
    "Route",
    "Seat",
    "Sight",
    "Silence",
    "SpoolProducer",
    "Standing",
    "Target",
    "Term",
    "TopicId",
    "TopicReader",
    "TopicSight",
    "TopicSpec",
    "TopicView",
    "TracerProducer",
    "Unknown",
    "Version",
    "cold_answer",
    "cold_bootstrap",
    "demoted_now",
    "ensure_state_topic",
    "ensure_topics",
    "ensure_usable",
    "look_at",
    "mark_demoted",
    "read_layout",
    "reassign",
    "records_between",
    "registered_brokers",
    "reorder_all",
    "telemetry_specs",
    "tls_context",
    "values_now",
]
