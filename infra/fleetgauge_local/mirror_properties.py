"""The configuration of one MirrorMaker process."""

from fleetgauge_local.layout import Layout, MirrorSpec, Route

# A topic that is new, a group that is new and a commit should be seen by whoever just made them.
_PROMPT = {
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    # Whoever waits for a cluster that is gone is asked again rather than waited for.
    "admin.timeout.ms": "10000",
}

# Offset pairs are for the day on which the source is gone, so it does not keep them. About every tenth
# record has one.
_SYNCS = {
    "offset-syncs.topic.location": "target",
    "offset.lag.max": "10",
    "emit.checkpoints.enabled": "true",
    # Groups are moved by Fleetgauge, which knows both sources of an aggregate.
    "sync.group.offsets.enabled": "false",
    # Nobody has rights to copy: these clusters ask for none.
    "sync.topic.acls.enabled": "false",
}

_TOPICS_OF_ITS_OWN = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "config.storage.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
)

# Otherwise every class of every jar is looked at, three times over.
_PLUGINS = {"plugin.discovery": "service_load"}

# MirrorMaker passes these to its workers only with the target's name before them.
_WORKER = {
    # What was copied and not yet committed is copied again after a kill.
    "offset.flush.interval.ms": "1000",
    # A killed worker's seat is free after the session, and is given away at once.
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
    "producer.enable.idempotence": "true",
    **_PLUGINS,
}


def mirror_properties(layout: Layout, mirror: MirrorSpec) -> dict[str, str]:
    """All of mm2.properties: the routes that lead into the mirror's cluster and no others."""
    copies = str(layout.cluster(mirror.target).replicas)
    return {
        **_clusters(layout, mirror),
        # MirrorMaker runs a worker for every pair of clusters that is not denied heartbeats.
        "emit.heartbeats.enabled": "false",
        **{key: value for route in mirror.routes for key, value in _route(route).items()},
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "topics": mirror.topics,
        **_PLUGINS,
        **_SYNCS,
        **_PROMPT,
        **dict.fromkeys(_TOPICS_OF_ITS_OWN, copies),
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        **{f"{mirror.target}.{key}": value for key, value in _WORKER.items()},
    }


def _clusters(layout: Layout, mirror: MirrorSpec) -> dict[str, str]:
    addresses = {f"{name}.bootstrap.servers": layout.bootstrap(name) for name in mirror.clusters}
    return {"clusters": ",".join(mirror.clusters), **addresses}


def _route(route: Route) -> dict[str, str]:
    way = f"{route.source}->{route.target}"
    return {f"{way}.enabled": "true", f"{way}.emit.heartbeats.enabled": "true"}
