"""Whose fault a failed probe is: the cluster's, or the agent's own.

Motivation: a service level must fall only for failures that every client of the cluster would have met. A
missing permission, an expired password or a full disk of the agent's host is no outage of a broker.

Approach: each code has an owner: what would a client have met that has its own rights, its own quota and a
topic of its own? Doubtful codes, and codes that a newer client library adds, are the cluster's: a failure
that counts is seen, one that is excluded may hide an outage. A code alone does not excuse a broker that
refuses while others accept: ``needs_agreement`` names the faults that all brokers have to agree on.
"""

from collections.abc import Mapping
from enum import StrEnum


class AgentFault(StrEnum):
    """A reason of the agent's own for which probes fail; the value is stored in pulses and findings."""

    RIGHTS = "rights"
    CREDENTIALS = "credentials"
    PROBE_TOPIC = "probe_topic"
    QUOTA = "quota"
    HOST = "host"
    CLOCK = "clock"
    CLIENT = "client"

    @property
    def description(self) -> str:
        """The fault in words, which complete "not measured: "."""
        return _DESCRIPTIONS[self]

    @property
    def remedy(self) -> str:
        """What to do, as an imperative sentence without a full stop."""
        return _REMEDIES[self]

    @property
    def needs_agreement(self) -> bool:
        """Whether the fault shows at every broker, so that one that refuses alone is at fault itself."""
        return self not in (AgentFault.QUOTA, AgentFault.HOST)


_DESCRIPTIONS = {
    AgentFault.RIGHTS: "the agent lacks a permission",
    AgentFault.CREDENTIALS: "the cluster rejects the agent's credentials",
    AgentFault.PROBE_TOPIC: "the probe topic is missing, or its settings reject probes",
    AgentFault.QUOTA: "a client quota delays the agent's probes",
    AgentFault.HOST: "the agent's host is out of files, memory, ports or disk",
    AgentFault.CLOCK: "the clock of the agent's host is wrong",
    AgentFault.CLIENT: "the cluster does not support a request of the agent's Kafka client",
}
_REMEDIES = {
    AgentFault.RIGHTS: "grant what `fleetgauge probe acls` prints",
    AgentFault.CREDENTIALS: "renew the agent's password, token or client certificate",
    AgentFault.PROBE_TOPIC: (
        "compare the topic's settings with `fleetgauge validate --connect`; if nothing else uses the topic, "
        "delete it, and the agent creates it again"
    ),
    AgentFault.QUOTA: "give the agent's principal and client ids a quota of their own",
    AgentFault.HOST: "raise the limits of the agent's host (open files, memory, local ports, disk)",
    AgentFault.CLOCK: "correct the clock of the agent's host, then restart the agent",
    AgentFault.CLIENT: "upgrade the agent, or report the error in its log",
}

#: Own codes of the agent, in addition to the client library's.
ACK_LATE, NO_REPORT, NOT_RECEIVED, NOT_LEADING = "ACK_LATE", "NO_REPORT", "NOT_RECEIVED", "NOT_LEADING"
AUTHENTICATION, THROTTLED, OWN_RESOURCES = "AUTHENTICATION", "THROTTLED", "OWN_RESOURCES"
CLOCK_STEPPED = "CLOCK_STEPPED"
OUR_CERTIFICATE_REFUSED = "OUR_CERTIFICATE_REFUSED"
#: Codes of probes that the agent withdrew.
PURGED_CODES = frozenset({"PURGE_QUEUE", "PURGE_INFLIGHT"})

#: Codes of the client library are without the underscore that it puts before its local ones.
_AGENT_CODES = {
    AgentFault.RIGHTS: (
        "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED DELEGATION_TOKEN_AUTHORIZATION_FAILED"
    ),
    AgentFault.CREDENTIALS: (
        f"{AUTHENTICATION} {OUR_CERTIFICATE_REFUSED} SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM "
        "ILLEGAL_SASL_STATE UNACCEPTABLE_CREDENTIAL INVALID_PRINCIPAL_TYPE DELEGATION_TOKEN_EXPIRED "
        "DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_AUTH_DISABLED "
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    ),
    AgentFault.PROBE_TOPIC: (
        "UNKNOWN_TOPIC_OR_PART UNKNOWN_TOPIC UNKNOWN_PARTITION UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID "
        "TOPIC_EXCEPTION INVALID_RECORD MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE POLICY_VIOLATION "
        "UNSUPPORTED_FOR_MESSAGE_FORMAT TOPIC_ALREADY_EXISTS TOPIC_DELETION_DISABLED INVALID_PARTITIONS "
        "INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG PURGE_QUEUE PURGE_INFLIGHT"
    ),
    AgentFault.QUOTA: f"{THROTTLED} THROTTLING_QUOTA_EXCEEDED",
    AgentFault.HOST: f"{OWN_RESOURCES} QUEUE_FULL CRIT_SYS_RESOURCE FS",
    AgentFault.CLOCK: f"{CLOCK_STEPPED} INVALID_TIMESTAMP",
    AgentFault.CLIENT: (
        "UNSUPPORTED_VERSION UNSUPPORTED_FEATURE UNSUPPORTED_COMPRESSION_TYPE INVALID_REQUIRED_ACKS "
        "INVALID_REQUEST NOT_IMPLEMENTED NOT_CONFIGURED INVALID_ARG INVALID_TYPE BAD_COMPRESSION "
        "KEY_SERIALIZATION VALUE_SERIALIZATION KEY_DESERIALIZATION VALUE_DESERIALIZATION READ_ONLY STATE "
        "CONFLICT EXISTING_SUBSCRIPTION UNKNOWN_PROTOCOL DESTROY INTR APPLICATION"
    ),
}
_FAULTS = {code: fault for fault, codes in _AGENT_CODES.items() for code in codes.split()}

#: Codes that count against the cluster. Whether a code is listed here or not makes no difference to a probe;
#: the list shows that each code has been judged.
CLUSTER_CODES = frozenset(
    (
        # Codes of the agent's own, and of its cold connections.
        f"{ACK_LATE} {NO_REPORT} {NOT_RECEIVED} {NOT_LEADING} NO_NAME REFUSED TIMED_OUT NO_WAY MUTE "
        "NOT_KAFKA WANTS_TLS NO_TLS TLS_REFUSED CERTIFICATE_EXPIRED CERTIFICATE_OF_ANOTHER_NAME "
        "CERTIFICATE_UNTRUSTED CERTIFICATE_NOT_YET_VALID NO_ANSWER "
        # Produce, fetch and metadata requests: the broker, its leadership, its replicas, its storage.
        "UNKNOWN OFFSET_OUT_OF_RANGE INVALID_MSG INVALID_MSG_SIZE LEADER_NOT_AVAILABLE "
        "NOT_LEADER_FOR_PARTITION REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE "
        "NETWORK_EXCEPTION NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND KAFKA_STORAGE_ERROR "
        "FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE STALE_BROKER_EPOCH STALE_CTRL_EPOCH "
        "NOT_CONTROLLER UNKNOWN_CONTROLLER_ID LISTENER_NOT_FOUND LOG_DIR_NOT_FOUND "
        "FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH OUT_OF_ORDER_SEQUENCE_NUMBER "
        "DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH UNKNOWN_PRODUCER_ID INVALID_PRODUCER_ID_MAPPING "
        "PRODUCER_FENCED REBOOTSTRAP_REQUIRED MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE "
        "PRINCIPAL_DESERIALIZATION_FAILURE OPERATION_NOT_ATTEMPTED "
        # The client's view of a broker or a connection that does not work.
        "MSG_TIMED_OUT TIMED_OUT_QUEUE TRANSPORT RESOLVE SSL ALL_BROKERS_DOWN DESTROY_BROKER BAD_MSG "
        "UNDERFLOW ISR_INSUFF NODE_UPDATE UNKNOWN_BROKER LOG_TRUNCATION AUTO_OFFSET_RESET PARTITION_EOF "
        "NO_OFFSET FAIL FATAL RETRY PARTIAL OUTDATED IN_PROGRESS PREV_IN_PROGRESS WAIT_CACHE WAIT_COORD "
        "FENCED GAPLESS_GUARANTEE INCONSISTENT INVALID_DIFFERENT_RECORD NOENT NOOP MAX_POLL_EXCEEDED "
        "ASSIGNMENT_LOST ASSIGN_PARTITIONS REVOKE_PARTITIONS UNKNOWN_GROUP "
        # Administration, groups, transactions, share groups and quorum: no probe makes these requests.
        "NO_ERROR INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED SECURITY_DISABLED RESOURCE_NOT_FOUND "
        "DUPLICATE_RESOURCE ELECTION_NOT_NEEDED ELIGIBLE_LEADERS_NOT_AVAILABLE "
        "PREFERRED_LEADER_NOT_AVAILABLE NO_REASSIGNMENT_IN_PROGRESS REASSIGNMENT_IN_PROGRESS "
        "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR ILLEGAL_GENERATION "
        "INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT "
        "REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE OFFSET_METADATA_TOO_LARGE NON_EMPTY_GROUP "
        "GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED GROUP_SUBSCRIBED_TO_TOPIC MEMBER_ID_REQUIRED "
        "FENCED_INSTANCE_ID UNRELEASED_INSTANCE_ID FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH "
        "UNSUPPORTED_ASSIGNOR UNSTABLE_OFFSET_COMMIT INVALID_REGULAR_EXPRESSION STREAMS_INVALID_TOPOLOGY "
        "STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED INVALID_TXN_STATE "
        "INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS TRANSACTION_COORDINATOR_FENCED "
        "TRANSACTION_ABORTABLE FENCED_STATE_EPOCH INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND "
        "SHARE_SESSION_LIMIT_REACHED INVALID_SHARE_SESSION_EPOCH INVALID_REGISTRATION "
        "UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE DUPLICATE_VOTER VOTER_NOT_FOUND INVALID_VOTER_KEY "
        "INCONSISTENT_VOTER_SET"
    ).split()
)
AGENT_CODES = frozenset(_FAULTS)


def find_agent_fault(code: str) -> AgentFault | None:
    """Return the agent's own fault that a failure code stands for; None if it counts against the cluster."""
    return _FAULTS.get(code)


def split_failures(failures: Mapping[str, int], failed: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the failures of a broker's leg that count, and those by the agent's own fault.

    ``failed`` is the number of attempts without a success, which the failures that count add up to: a code of
    the agent's own counts where the broker alone refused.
    """
    counted, uncounted = dict(failures), dict[str, int]()
    excess = sum(failures.values()) - failed
    for code in sorted(failures):
        if excess > 0 and find_agent_fault(code):
            uncounted[code] = min(excess, failures[code])
            excess -= uncounted[code]
            counted[code] -= uncounted[code]
    return {code: number for code, number in counted.items() if number}, uncounted
