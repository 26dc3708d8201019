"""Mirrors, groups and producers between regions, by the minute.

Columns are only ever added, never renamed.
"""

from fleetgauge_core.tables.model import Owner, Table, Type, columns

_T = Type

#: What is known of mirrored partitions: rows are only added, and mean something in the order of ``ordinal``.
CHECKPOINTS = Table(
    path="recovery/checkpoints",
    key=("ordinal",),
    columns=columns(
        ordinal=_T.LONG,
        source=_T.STRING,
        destination=_T.STRING,
        topic=_T.STRING,
        partition=_T.INT,
        source_topic_id=_T.STRING,
        destination_topic_id=_T.STRING,
        epoch=_T.LONG,
        src_offset=_T.LONG,
        dst_offset=_T.LONG,
        origin=_T.STRING,
        observed_at=_T.TIMESTAMP,
    ),
    owner=Owner.RECOVERY,
)

#: What a failover of a group would have cost, or cost when it was tried; a row a group.
DRILLS = Table(
    path="recovery/drills",
    key=("drill_id", "group_id"),
    columns=columns(
        drill_id=_T.STRING,
        group_id=_T.STRING,
        at=_T.TIMESTAMP,
        active=_T.STRING,
        passive=_T.STRING,
        author=_T.STRING,
        executed=_T.BOOLEAN,
        ready=_T.BOOLEAN,
        reasons=_T.STRING,
        partitions=_T.INT,
        replay_forecast=_T.LONG,
        replay_at_most=_T.LONG,
        lost_at_most=_T.LONG,
        replayed=_T.LONG,
        missing=_T.LONG,
        decide_ms=_T.LONG,
        write_ms=_T.LONG,
        first_record_ms=_T.LONG,
    ),
    owner=Owner.RECOVERY,
)

#: How a mirror was at the end of each minute: what of its source had not been copied. ``..._at_most``: upper
#: bounds, from what MirrorMaker had told; those without: estimates, from tracers. NULL: nobody knows.
MIRROR_MINUTES = Table(
    path="recovery/mirror_minutes",
    key=("source", "destination", "minute"),
    columns=columns(
        source=_T.STRING,
        destination=_T.STRING,
        minute=_T.TIMESTAMP,
        partitions=_T.INT,
        idle=_T.INT,
        behind_at_most=_T.LONG,
        behind_s_at_most=_T.DOUBLE,
        behind=_T.LONG,
        behind_s=_T.DOUBLE,
        silent_s=_T.DOUBLE,
        fresh=_T.BOOLEAN,
        tracers=_T.INT,
        tracer_p50_ms=_T.LONG,
        tracer_p99_ms=_T.LONG,
        looped=_T.LONG,
        source_answers=_T.BOOLEAN,
        destination_answers=_T.BOOLEAN,
        day=_T.DATE,
    ),
    partition_by=("day",),
    owner=Owner.RECOVERY,
)

#: What a failover of a group would have cost at the end of each minute.
GROUP_MINUTES = Table(
    path="recovery/group_minutes",
    key=("active", "passive", "group_id", "minute"),
    columns=columns(
        active=_T.STRING,
        passive=_T.STRING,
        group_id=_T.STRING,
        minute=_T.TIMESTAMP,
        partitions=_T.INT,
        ready=_T.BOOLEAN,
        reasons=_T.STRING,
        unbounded=_T.INT,
        replay=_T.LONG,
        replay_at_most=_T.LONG,
        lost_at_most=_T.LONG,
        lost_s_at_most=_T.DOUBLE,
        rto_ms=_T.LONG,
        day=_T.DATE,
    ),
    partition_by=("day",),
    owner=Owner.RECOVERY,
)

#: Whether producers of a vantage could go on in a cluster, and whether that could take them.
PRODUCER_MINUTES = Table(
    path="recovery/producer_minutes",
    key=("vantage", "cluster_id", "minute"),
    columns=columns(
        vantage=_T.STRING,
        cluster_id=_T.STRING,
        minute=_T.TIMESTAMP,
        sent=_T.INT,
        acknowledged=_T.INT,
        ack_p50_ms=_T.LONG,
        ack_p99_ms=_T.LONG,
        records_per_s=_T.DOUBLE,
        capacity_records_per_s=_T.DOUBLE,
        day=_T.DATE,
    ),
    partition_by=("day",),
    owner=Owner.RECOVERY,
)

#: What speaks against a failover, told when it began and when it ended; a row each time.
RECOVERY_FINDINGS = Table(
    path="recovery/findings",
    key=("fingerprint", "at"),
    columns=columns(
        fingerprint=_T.STRING,
        at=_T.TIMESTAMP,
        opens=_T.BOOLEAN,
        kind=_T.STRING,
        severity=_T.STRING,
        cluster_id=_T.STRING,
        other_id=_T.STRING,
        subject=_T.STRING,
        summary=_T.STRING,
        evidence=_T.STRING,
    ),
    owner=Owner.RECOVERY,
)
