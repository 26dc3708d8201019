"""Every table of a lake. Columns are only ever added, never renamed."""

from fleetgauge_core.tables.model import Column, Table, Type

_T = Type


def _columns(**types: Type) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


PROBE_MINUTES = Table(
    path="bronze/probe_minutes",
    key=("run_id", "sequence"),
    columns=_columns(
        agent_id=_T.STRING,
        agent_version=_T.STRING,
        run_id=_T.STRING,
        sequence=_T.LONG,
        vantage=_T.STRING,
        cluster_id=_T.STRING,
        kafka_cluster_uuid=_T.STRING,
        broker_id=_T.INT,
        rack=_T.STRING,
        leg=_T.STRING,
        minute=_T.TIMESTAMP,
        expected_brokers=_T.INTS,
        attempted=_T.INT,
        acknowledged=_T.INT,
        received=_T.INT,
        ack_us=_T.INTS,
        e2e_us=_T.INTS,
        produce_failures=_T.COUNTS,
        consume_failures=_T.COUNTS,
        lost=_T.INT,
        duplicated=_T.INT,
        out_of_order=_T.INT,
        schedule_lag_p95_us=_T.INT,
        schedule_lag_max_us=_T.INT,
        led_by=_T.INTS,
        leader_epoch=_T.INT,
        emitted_at=_T.TIMESTAMP,
        source=_T.STRING,
        ingested_at=_T.TIMESTAMP,
        day=_T.DATE,
    ),
    partition_by=("day",),
    volatile=("source", "ingested_at"),
)

QUARANTINE = Table(
    path="ops/quarantine",
    key=("source",),
    columns=_columns(
        source=_T.STRING,
        value=_T.BINARY,
        reason=_T.STRING,
        detail=_T.STRING,
        ingested_at=_T.TIMESTAMP,
    ),
    volatile=("ingested_at",),
)

#: Why a record lies in quarantine; every word that its column `reason` may hold.
REASONS = (
    "not_decodable",
    "unknown_fingerprint",
    "oversize",
    "trailing_bytes",
    "missing_field",
    "unknown_cluster",
    "future",
    "too_old",
    "expired",
    "negative_latency",
    "unsorted_latencies",
    "counts_do_not_add_up",
    "conflicting_duplicate",
)

BROKER_MINUTES = Table(
    path="silver/broker_minutes",
    key=("cluster_id", "broker_id", "leg", "minute"),
    columns=_columns(
        cluster_id=_T.STRING,
        broker_id=_T.INT,
        leg=_T.STRING,
        minute=_T.TIMESTAMP,
        attempted=_T.LONG,
        succeeded=_T.LONG,
        acknowledged=_T.LONG,
        received=_T.LONG,
        availability=_T.DOUBLE,
        latency_p50_us=_T.LONG,
        latency_p99_us=_T.LONG,
        latency_p99_censored_us=_T.LONG,
        latency_max_us=_T.LONG,
        ack_p99_us=_T.LONG,
        failures=_T.COUNTS,
        lost=_T.LONG,
        duplicated=_T.LONG,
        vantages=_T.INT,
        agent_late=_T.BOOLEAN,
        measured=_T.BOOLEAN,
        led_by=_T.INTS,
        day=_T.DATE,
    ),
    partition_by=("day",),
)

CLUSTER_MINUTES = Table(
    path="silver/cluster_minutes",
    key=("cluster_id", "minute"),
    columns=_columns(
        cluster_id=_T.STRING,
        minute=_T.TIMESTAMP,
        latency_p99_us=_T.LONG,
        latency_worst_home=_T.INT,
        latency_p99_censored_us=_T.LONG,
        latency_pooled_p99_us=_T.LONG,
        availability=_T.DOUBLE,
        availability_worst_home=_T.INT,
        availability_pooled=_T.DOUBLE,
        leader_ack_p99_us=_T.LONG,
        leader_worst_broker=_T.INT,
        brokers_expected=_T.INT,
        brokers_measured=_T.INT,
        attempted=_T.LONG,
        succeeded=_T.LONG,
        cause=_T.STRING,
        day=_T.DATE,
    ),
    partition_by=("day",),
)

CLUSTER_WEEKS = Table(
    path="gold/cluster_weeks",
    key=("cluster_id", "week", "revision"),
    columns=_columns(
        cluster_id=_T.STRING,
        week=_T.DATE,
        revision=_T.INT,
        latency_p99_us=_T.LONG,
        latency_p99_censored_us=_T.LONG,
        availability_p99=_T.DOUBLE,
        availability_ratio=_T.DOUBLE,
        bad_minutes=_T.LONG,
        latency_objective_us=_T.LONG,
        latency_budget_minutes=_T.DOUBLE,
        latency_budget_left_minutes=_T.DOUBLE,
        availability_objective=_T.DOUBLE,
        availability_budget_minutes=_T.DOUBLE,
        availability_spent_minutes=_T.DOUBLE,
        latency_p99_us_raw=_T.LONG,
        latency_p99_censored_us_raw=_T.LONG,
        availability_p99_raw=_T.DOUBLE,
        availability_ratio_raw=_T.DOUBLE,
        bad_minutes_raw=_T.LONG,
        latency_objective_us_raw=_T.LONG,
        latency_budget_minutes_raw=_T.DOUBLE,
        latency_budget_left_minutes_raw=_T.DOUBLE,
        availability_objective_raw=_T.DOUBLE,
        availability_budget_minutes_raw=_T.DOUBLE,
        availability_spent_minutes_raw=_T.DOUBLE,
        minutes_measured=_T.LONG,
        minutes_expected=_T.LONG,
        minutes_measured_raw=_T.LONG,
        minutes_expected_raw=_T.LONG,
        coverage=_T.DOUBLE,
        causes=_T.COUNTS,
        corrections=_T.STRING,
        closed=_T.BOOLEAN,
        revision_reason=_T.STRING,
        definition=_T.STRING,
        computed_at=_T.TIMESTAMP,
    ),
    volatile=("computed_at",),
)

FLEET_WEEKS = Table(
    path="gold/fleet_weeks",
    key=("week", "metric", "segment", "segment_value", "revision"),
    columns=_columns(
        week=_T.DATE,
        metric=_T.STRING,
        segment=_T.STRING,
        segment_value=_T.STRING,
        revision=_T.INT,
        median=_T.DOUBLE,
        p90=_T.DOUBLE,
        p99=_T.DOUBLE,
        clusters=_T.LONG,
        clusters_excluded=_T.LONG,
        closed=_T.BOOLEAN,
    ),
)

#: Bad minutes by their cause; of the latest revision of each week, and rewritten with it.
BURN_CAUSES = Table(
    path="gold/burn_causes",
    key=("week", "segment", "segment_value", "cause"),
    columns=_columns(
        week=_T.DATE,
        segment=_T.STRING,
        segment_value=_T.STRING,
        cause=_T.STRING,
        bad_minutes=_T.LONG,
        clusters=_T.LONG,
    ),
)

#: What was pooled of the minutes that decide a closed week, kept when bronze has expired.
EVIDENCE = Table(
    path="gold/evidence",
    key=("cluster_id", "week", "minute", "broker_id", "leg"),
    columns=_columns(
        cluster_id=_T.STRING,
        week=_T.DATE,
        minute=_T.TIMESTAMP,
        broker_id=_T.INT,
        leg=_T.STRING,
        attempted=_T.LONG,
        ack_us=_T.INTS,
        e2e_us=_T.INTS,
        failures=_T.COUNTS,
        why=_T.STRING,
    ),
)

HEALTH_EVENTS = Table(
    path="ops/health_events",
    key=("event_id",),
    columns=_columns(
        event_id=_T.STRING,
        fingerprint=_T.STRING,
        cluster_id=_T.STRING,
        broker_id=_T.INT,
        at=_T.TIMESTAMP,
        from_state=_T.STRING,
        to_state=_T.STRING,
        kind=_T.STRING,
        evidence=_T.STRING,
    ),
)

#: Minutes that a person took out of the levels; written by `correct`, never by the pipeline.
CORRECTIONS = Table(
    path="ops/corrections",
    key=("correction_id",),
    columns=_columns(
        correction_id=_T.STRING,
        scope=_T.STRING,
        cluster_id=_T.STRING,
        broker_id=_T.INT,
        segment=_T.STRING,
        segment_value=_T.STRING,
        starts=_T.TIMESTAMP,
        ends=_T.TIMESTAMP,
        recurs=_T.STRING,
        recurs_until=_T.TIMESTAMP,
        reason=_T.STRING,
        author=_T.STRING,
        created_at=_T.TIMESTAMP,
        withdrawn_at=_T.TIMESTAMP,
        withdrawn_by=_T.STRING,
    ),
)

#: What was done to brokers on purpose; written by what does it, never by the pipeline.
ACTIONS = Table(
    path="ops/actions",
    key=("action_id",),
    columns=_columns(
        action_id=_T.STRING,
        kind=_T.STRING,
        cluster_id=_T.STRING,
        broker_id=_T.INT,
        starts=_T.TIMESTAMP,
        ends=_T.TIMESTAMP,
        reason=_T.STRING,
        author=_T.STRING,
        detail=_T.STRING,
    ),
)

QUALITY = Table(
    path="ops/quality",
    key=("check_id",),
    columns=_columns(
        check_id=_T.STRING,
        at=_T.TIMESTAMP,
        batch=_T.STRING,
        suite=_T.STRING,
        expectation=_T.STRING,
        success=_T.BOOLEAN,
        observed=_T.STRING,
        # Of a week: the row says whether the expectation holds for it now, and since when.
        week=_T.DATE,
    ),
    volatile=("at",),
)

#: What is known of mirrored partitions: rows are only added, and mean something in the order of ``ordinal``.
CHECKPOINTS = Table(
    path="recovery/checkpoints",
    key=("ordinal",),
    columns=_columns(
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
)

#: What a failover of a group would have cost, or cost when it was tried; a row a group.
DRILLS = Table(
    path="recovery/drills",
    key=("drill_id", "group_id"),
    columns=_columns(
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
)

#: How a mirror was at the end of each minute: what of its source had not been copied. ``..._at_most``: upper
#: bounds, from what MirrorMaker had told; those without: estimates, from tracers. NULL: nobody knows.
MIRROR_MINUTES = Table(
    path="recovery/mirror_minutes",
    key=("source", "destination", "minute"),
    columns=_columns(
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
)

#: What a failover of a group would have cost at the end of each minute.
GROUP_MINUTES = Table(
    path="recovery/group_minutes",
    key=("active", "passive", "group_id", "minute"),
    columns=_columns(
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
)

#: Whether producers of a vantage could go on in a cluster, and whether that could take them.
PRODUCER_MINUTES = Table(
    path="recovery/producer_minutes",
    key=("vantage", "cluster_id", "minute"),
    columns=_columns(
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
)

#: What speaks against a failover, told when it began and when it ended; a row each time.
RECOVERY_FINDINGS = Table(
    path="recovery/findings",
    key=("fingerprint", "at"),
    columns=_columns(
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
)

#: Weeks of mirrors and groups, and over all of them; ``subject`` is empty for the fleet's own rows, which
#: have ``median``, ``p90`` and ``p99`` where the others have ``value``.
RECOVERY_WEEKS = Table(
    path="gold/recovery_weeks",
    key=("week", "metric", "scope", "subject"),
    columns=_columns(
        week=_T.DATE,
        metric=_T.STRING,
        scope=_T.STRING,
        subject=_T.STRING,
        value=_T.DOUBLE,
        objective=_T.DOUBLE,
        met=_T.BOOLEAN,
        median=_T.DOUBLE,
        p90=_T.DOUBLE,
        p99=_T.DOUBLE,
        subjects=_T.LONG,
        subjects_excluded=_T.LONG,
        minutes_measured=_T.LONG,
        minutes_expected=_T.LONG,
        coverage=_T.DOUBLE,
        closed=_T.BOOLEAN,
    ),
)

ALL = (
    PROBE_MINUTES,
    QUARANTINE,
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    BURN_CAUSES,
    EVIDENCE,
    HEALTH_EVENTS,
    CORRECTIONS,
    ACTIONS,
    QUALITY,
    CHECKPOINTS,
    DRILLS,
    MIRROR_MINUTES,
    GROUP_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
    RECOVERY_WEEKS,
)

_OF_OTHERS = (
    CORRECTIONS,
    ACTIONS,
    CHECKPOINTS,
    DRILLS,
    MIRROR_MINUTES,
    GROUP_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
#: What the pipeline writes, under its lease; the others have writers of their own.
OF_THE_PIPELINE = tuple(table for table in ALL if table not in _OF_OTHERS)
