"""The recovery tables: offsets, lag, failover readiness and drills of mirrored clusters.

Columns are added, but never renamed or removed.
"""

from fleetgauge_core.tables.model import ColumnType, Table, TableOwner, make_columns

#: Pairs of source and destination offsets of mirrored partitions. Rows are only appended, and must be
#: applied in the order of ``ordinal``.
CHECKPOINTS = Table(
    path="recovery/checkpoints",
    key=("ordinal",),
    columns=make_columns(
        ordinal=ColumnType.LONG,
        source=ColumnType.STRING,
        destination=ColumnType.STRING,
        topic=ColumnType.STRING,
        partition=ColumnType.INT,
        source_topic_id=ColumnType.STRING,
        destination_topic_id=ColumnType.STRING,
        epoch=ColumnType.LONG,
        src_offset=ColumnType.LONG,
        dst_offset=ColumnType.LONG,
        origin=ColumnType.STRING,
        observed_at=ColumnType.TIMESTAMP,
    ),
    owner=TableOwner.RECOVERY,
)

#: Forecast and, if it was executed, measured cost of the failover of a consumer group: one row per drill and
#: group.
DRILLS = Table(
    path="recovery/drills",
    key=("drill_id", "group_id"),
    columns=make_columns(
        drill_id=ColumnType.STRING,
        group_id=ColumnType.STRING,
        at=ColumnType.TIMESTAMP,
        active=ColumnType.STRING,
        passive=ColumnType.STRING,
        author=ColumnType.STRING,
        executed=ColumnType.BOOLEAN,
        ready=ColumnType.BOOLEAN,
        reasons=ColumnType.STRING,
        partitions=ColumnType.INT,
        replay_forecast=ColumnType.LONG,
        replay_at_most=ColumnType.LONG,
        lost_at_most=ColumnType.LONG,
        replayed=ColumnType.LONG,
        missing=ColumnType.LONG,
        decide_ms=ColumnType.LONG,
        write_ms=ColumnType.LONG,
        first_record_ms=ColumnType.LONG,
    ),
    owner=TableOwner.RECOVERY,
)

#: Replication lag of a mirror at the end of each minute. Columns ending in ``_at_most`` are upper bounds from
#: MirrorMaker's offset syncs; ``behind`` and ``behind_s`` are estimates from tracers. NULL means unknown.
MIRROR_MINUTES = Table(
    path="recovery/mirror_minutes",
    key=("source", "destination", "minute"),
    columns=make_columns(
        source=ColumnType.STRING,
        destination=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        partitions=ColumnType.INT,
        idle=ColumnType.INT,
        behind_at_most=ColumnType.LONG,
        behind_s_at_most=ColumnType.DOUBLE,
        behind=ColumnType.LONG,
        behind_s=ColumnType.DOUBLE,
        silent_s=ColumnType.DOUBLE,
        fresh=ColumnType.BOOLEAN,
        tracers=ColumnType.INT,
        tracer_p50_ms=ColumnType.LONG,
        tracer_p99_ms=ColumnType.LONG,
        looped=ColumnType.LONG,
        source_answers=ColumnType.BOOLEAN,
        destination_answers=ColumnType.BOOLEAN,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    owner=TableOwner.RECOVERY,
)

#: Forecast cost of the failover of a consumer group at the end of each minute. NULL means unknown.
GROUP_MINUTES = Table(
    path="recovery/group_minutes",
    key=("active", "passive", "group_id", "minute"),
    columns=make_columns(
        active=ColumnType.STRING,
        passive=ColumnType.STRING,
        group_id=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        partitions=ColumnType.INT,
        ready=ColumnType.BOOLEAN,
        reasons=ColumnType.STRING,
        unbounded=ColumnType.INT,
        replay=ColumnType.LONG,
        replay_at_most=ColumnType.LONG,
        lost_at_most=ColumnType.LONG,
        lost_s_at_most=ColumnType.DOUBLE,
        rto_ms=ColumnType.LONG,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    owner=TableOwner.RECOVERY,
)

#: Whether producers at a vantage can produce to a cluster, and the cluster's load and capacity, per minute.
PRODUCER_MINUTES = Table(
    path="recovery/producer_minutes",
    key=("vantage", "cluster_id", "minute"),
    columns=make_columns(
        vantage=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        sent=ColumnType.INT,
        acknowledged=ColumnType.INT,
        ack_p50_ms=ColumnType.LONG,
        ack_p99_ms=ColumnType.LONG,
        records_per_s=ColumnType.DOUBLE,
        capacity_records_per_s=ColumnType.DOUBLE,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    owner=TableOwner.RECOVERY,
)

#: Findings that speak against a failover: one row when a finding opens and one when it ends.
RECOVERY_FINDINGS = Table(
    path="recovery/findings",
    key=("fingerprint", "at"),
    columns=make_columns(
        fingerprint=ColumnType.STRING,
        at=ColumnType.TIMESTAMP,
        opens=ColumnType.BOOLEAN,
        kind=ColumnType.STRING,
        severity=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        other_id=ColumnType.STRING,
        subject=ColumnType.STRING,
        summary=ColumnType.STRING,
        evidence=ColumnType.STRING,
    ),
    owner=TableOwner.RECOVERY,
)
