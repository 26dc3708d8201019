"""Build the mm2.properties of a MirrorMaker process."""

from fleetgauge_local.layout import FleetLayout, MirrorSpec, ReplicationRoute

# Short intervals, so that new topics, new groups and commits are replicated within seconds.
_SHORT_INTERVALS = {
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    # Fail and retry soon while a cluster is unavailable.
    "admin.timeout.ms": "10000",
}

# Offset syncs are needed when the source has failed, so they are stored in the target. About every tenth
# record has an offset sync.
_SYNCS = {
    "offset-syncs.topic.location": "target",
    "offset.lag.max": "10",
    "emit.checkpoints.enabled": "true",
    # Fleetgauge syncs group offsets itself, as it combines both sources of an aggregate.
    "sync.group.offsets.enabled": "false",
    # These clusters have no authorizer, so there are no ACLs to sync.
    "sync.topic.acls.enabled": "false",
}

_REPLICATION_FACTORS = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "config.storage.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
)

# The default mode scans every class of every jar, three times.
_PLUGIN_DISCOVERY = {"plugin.discovery": "service_load"}

# MirrorMaker passes these to its workers only if they are prefixed with the target's name.
_WORKER = {
    # Records replicated since the last flush are replicated again after a kill.
    "offset.flush.interval.ms": "1000",
    # A killed worker leaves its group after the session timeout, and its tasks are reassigned at once.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
    "producer.enable.idempotence": "true",
    **_PLUGIN_DISCOVERY,
}


def build_mirror_properties(layout: FleetLayout, mirror: MirrorSpec) -> dict[str, str]:
    """Return all properties: only the replication flows into the mirror's target are enabled."""
    replication_factor = str(layout.cluster(mirror.target).replicas)
    return {
        **_clusters(layout, mirror),
        # Otherwise MirrorMaker runs a worker for every pair of clusters to emit heartbeats.
        "emit.heartbeats.enabled": "false",
        **{key: value for route in mirror.routes for key, value in _route(route).items()},
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "topics": mirror.topics,
        **_PLUGIN_DISCOVERY,
        **_SYNCS,
        **_SHORT_INTERVALS,
        **dict.fromkeys(_REPLICATION_FACTORS, replication_factor),
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        **{f"{mirror.target}.{key}": value for key, value in _WORKER.items()},
    }


def _clusters(layout: FleetLayout, mirror: MirrorSpec) -> dict[str, str]:
    addresses = {f"{name}.bootstrap.servers": layout.bootstrap(name) for name in mirror.clusters}
    return {"clusters": ",".join(mirror.clusters), **addresses}


def _route(route: ReplicationRoute) -> dict[str, str]:
    flow = f"{route.source}->{route.target}"
    return {f"{flow}.enabled": "true", f"{flow}.emit.heartbeats.enabled": "true"}
