"""The kinds and phases of changes, which all writers and readers of them share."""

from enum import StrEnum


class ChangeKind(StrEnum):
    """The values of ``kind`` of a change; records of later versions may have others."""

    BROKER_RESTARTED = "broker_restarted"
    """The process of a broker ended and started again."""
    BROKER_REPLACED = "broker_replaced"
    """A broker came back with the same ID and an empty or another log directory."""
    BROKER_REGISTERED = "broker_registered"
    BROKER_UNREGISTERED = "broker_unregistered"
    BROKER_FENCED = "broker_fenced"
    """The controller does not let a broker lead or serve clients, because it is not heard from."""
    BROKER_UNFENCED = "broker_unfenced"
    BROKER_CORDONED = "broker_cordoned"
    """Log directories of a broker take no new replicas (KIP-1066)."""
    BROKER_UNCORDONED = "broker_uncordoned"
    BROKER_VERSION = "broker_version"
    BROKER_RACK = "broker_rack"
    BROKER_LISTENER = "broker_listener"
    BROKER_GONE = "broker_gone"
    """A broker is registered, but has been fenced for a long time."""
    LEADERSHIP_MOVED = "leadership_moved"
    REASSIGNMENT = "reassignment"
    """Partitions get replicas on other brokers, or their replicas another order."""
    THROTTLE = "throttle"
    """The bandwidth of replication is limited."""
    THROTTLE_FIGHT = "throttle_fight"
    """Two tools undo each other's throttle."""
    TOPIC_CREATED = "topic_created"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_RECREATED = "topic_recreated"
    PARTITIONS_ADDED = "partitions_added"
    REPLICATION_FACTOR = "replication_factor"
    SETTING_CHANGED = "setting_changed"
    QUOTA_CHANGED = "quota_changed"
    ACLS_CHANGED = "acls_changed"
    CONTROLLER_MOVED = "controller_moved"
    QUORUM_CHANGED = "quorum_changed"
    FEATURE_LEVEL = "feature_level"
    LOG_DIR_OFFLINE = "log_dir_offline"
    LOG_DIR_ONLINE = "log_dir_online"
    DEPLOY = "deploy"
    """Reported: a release of software."""
    TICKET = "ticket"
    """Reported: work that a ticket describes."""
    HOST_MAINTENANCE = "host_maintenance"
    """Reported: work on hosts, networks or disks."""
    OTHER = "other"
    """Reported: anything else."""


class ChangePhase(StrEnum):
    """Which part of a change a record tells of; of one change, the latest record counts."""

    HAPPENED = "happened"
    """It took place at some time between its start and its end."""
    BEGUN = "begun"
    """It lasts."""
    PROGRESS = "progress"
    """It lasts, and has advanced or changed."""
    ENDED = "ended"
    CANCELLED = "cancelled"


#: What people and other systems report; everything else is observed.
REPORTED_KINDS = (ChangeKind.DEPLOY, ChangeKind.TICKET, ChangeKind.HOST_MAINTENANCE, ChangeKind.OTHER)
