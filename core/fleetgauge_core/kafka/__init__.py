"""The only package that imports a Kafka client; all other packages use these names.

librdkafka (confluent-kafka) carries the data and most of the administration. kafka-python is used for what
librdkafka does not offer: fenced brokers, the controller's clock, validation of a topic's creation, partition
reassignment; and for consumer groups.
"""

from fleetgauge_core.kafka.api_versions import KafkaVersion
from fleetgauge_core.kafka.authentication_check import LoginSurvey, survey_logins
from fleetgauge_core.kafka.broker_registry import BrokerRegistry, read_broker_registry
from fleetgauge_core.kafka.cluster_admin import (
    ClusterAdmin,
    TopicMetadata,
    TopicSpec,
)
from fleetgauge_core.kafka.cluster_inspection import (
    AdvertisedBroker,
    ClusterInspection,
    InspectionTarget,
    inspect_clusters,
)
from fleetgauge_core.kafka.cluster_queries import (
    ClockOffset,
    ClusterAuthorization,
    QueryFailure,
    RequestRejection,
    TopicInspection,
)
from fleetgauge_core.kafka.cluster_reader import ClusterReader
from fleetgauge_core.kafka.cold_bootstrap import BootstrapMeasurement, measure_cold_bootstrap
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.consumer_groups import CommittedOffset, ConsumerGroups, GroupHasMembersError
from fleetgauge_core.kafka.credentials import create_tls_context, ensure_credentials_readable
from fleetgauge_core.kafka.demotion_marks import read_demotion_marks, write_demotion_mark
from fleetgauge_core.kafka.endpoint_probe import (
    ConnectionMeasurement,
    EndpointProbeResult,
    EndpointResponse,
    ProbeTimeouts,
    probe_endpoint,
)
from fleetgauge_core.kafka.errors import (
    AUTHENTICATION_FAILED,
    CredentialsUnreadableError,
    KafkaRequestRejectedError,
    KafkaSecurityError,
    KafkaUnavailableError,
    explain_telemetry_errors,
)
from fleetgauge_core.kafka.followed_reader import FollowedReader, ReportChange, TopicFollower, follow_topics
from fleetgauge_core.kafka.held_connections import BrokerAddress, HeldConnections
from fleetgauge_core.kafka.leader_election import LeaderElection, Leadership, LeadershipStatus
from fleetgauge_core.kafka.metadata_reader import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    read_cluster_metadata,
)
from fleetgauge_core.kafka.name_resolver import NameResolver
from fleetgauge_core.kafka.producer import (
    DeliveryReport,
    LeaderAndEpoch,
    ProbeProducer,
    RecordProducer,
    SpoolProducer,
    TracerProducer,
)
from fleetgauge_core.kafka.reassignment import reassign_topic, reorder_replicas
from fleetgauge_core.kafka.telemetry_topics import (
    build_log_topic_spec,
    build_telemetry_topic_specs,
    ensure_state_topic,
    ensure_telemetry_topics,
    keep_changes_topic,
    keep_telemetry_topics,
)
from fleetgauge_core.kafka.topic_change_reporter import (
    ReportTopicChange,
    TopicChangeReporter,
    log_topic_change,
)
from fleetgauge_core.kafka.topic_keeper import TopicKeeper
from fleetgauge_core.kafka.topic_offsets import TopicIdentity, TopicOffsets
from fleetgauge_core.kafka.topic_reader import (
    ConsumerRecord,
    TopicReader,
    read_record_range,
    read_topic_values,
)

__all__ = [
    "AUTHENTICATION_FAILED",
    "FOLLOWER_THROTTLED_RATE",
    "FOLLOWER_THROTTLED_REPLICAS",
    "AdvertisedBroker",
    "BootstrapMeasurement",
    "BrokerAddress",
    "BrokerRegistry",
    "ClockOffset",
    "ClusterAdmin",
    "ClusterAuthorization",
    "ClusterInspection",
    "ClusterReader",
    "CommittedOffset",
    "ConnectionFailure",
    "ConnectionMeasurement",
    "ConsumerGroups",
    "ConsumerRecord",
    "CredentialsUnreadableError",
    "DeliveryReport",
    "EndpointProbeResult",
    "EndpointResponse",
    "FollowedReader",
    "GroupHasMembersError",
    "HeldConnections",
    "InspectionTarget",
    "KafkaRequestRejectedError",
    "KafkaSecurityError",
    "KafkaUnavailableError",
    "KafkaVersion",
    "LeaderAndEpoch",
    "LeaderElection",
    "Leadership",
    "LeadershipStatus",
    "LoginSurvey",
    "NameResolver",
    "ProbeProducer",
    "ProbeTimeouts",
    "QueryFailure",
    "RecordProducer",
    "ReportChange",
    "ReportTopicChange",
    "RequestRejection",
    "SpoolProducer",
    "TopicChangeReporter",
    "TopicFollower",
    "TopicIdentity",
    "TopicInspection",
    "TopicKeeper",
    "TopicMetadata",
    "TopicOffsets",
    "TopicReader",
    "TopicSpec",
    "TracerProducer",
    "build_log_topic_spec",
    "build_telemetry_topic_specs",
    "create_tls_context",
    "ensure_credentials_readable",
    "ensure_state_topic",
    "ensure_telemetry_topics",
    "explain_telemetry_errors",
    "follow_topics",
    "inspect_clusters",
    "keep_changes_topic",
    "keep_telemetry_topics",
    "log_topic_change",
    "measure_cold_bootstrap",
    "probe_endpoint",
    "read_broker_registry",
    "read_cluster_metadata",
    "read_demotion_marks",
    "read_record_range",
    "read_topic_values",
    "reassign_topic",
    "reorder_replicas",
    "survey_logins",
    "write_demotion_mark",
]
