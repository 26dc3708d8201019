"""The ops tables: quarantined records, findings, corrections, actions, changes and quality checks.

Columns are added, but never renamed or removed.
"""

from fleetgauge_core.tables.model import ColumnType, Table, TableOwner, make_columns

#: Record values that the pipeline rejected, with the reason. ``source`` is the position in a topic or file.
QUARANTINE = Table(
    path="ops/quarantine",
    key=("source",),
    columns=make_columns(
        source=ColumnType.STRING,
        value=ColumnType.BINARY,
        reason=ColumnType.STRING,
        detail=ColumnType.STRING,
        ingested_at=ColumnType.TIMESTAMP,
    ),
    volatile=("ingested_at",),
    small=False,
)

#: All values of the column ``reason`` of ops/quarantine: why a record was rejected.
QUARANTINE_REASONS = (
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
    "implausible",
    "unconfirmed_brokers",
    "other_kafka_cluster",
)

#: Reasons that say that a record is unlikely, not that it is invalid: a person may accept such a record.
ACCEPTABLE_REASONS = ("implausible", "unconfirmed_brokers", "other_kafka_cluster")

#: State changes of brokers and clusters, as the watch publishes them.
HEALTH_EVENTS = Table(
    path="ops/health_events",
    key=("event_id",),
    columns=make_columns(
        event_id=ColumnType.STRING,
        fingerprint=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        broker_id=ColumnType.INT,
        at=ColumnType.TIMESTAMP,
        from_state=ColumnType.STRING,
        to_state=ColumnType.STRING,
        kind=ColumnType.STRING,
        evidence=ColumnType.STRING,
    ),
)

#: Time ranges that a person excluded from the service levels, for example planned maintenance.
CORRECTIONS = Table(
    path="ops/corrections",
    key=("correction_id",),
    columns=make_columns(
        correction_id=ColumnType.STRING,
        scope=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        broker_id=ColumnType.INT,
        segment=ColumnType.STRING,
        segment_value=ColumnType.STRING,
        starts=ColumnType.TIMESTAMP,
        ends=ColumnType.TIMESTAMP,
        recurs=ColumnType.STRING,
        recurs_until=ColumnType.TIMESTAMP,
        reason=ColumnType.STRING,
        author=ColumnType.STRING,
        created_at=ColumnType.TIMESTAMP,
        withdrawn_at=ColumnType.TIMESTAMP,
        withdrawn_by=ColumnType.STRING,
    ),
    owner=TableOwner.CORRECTIONS,
)

#: Actions on brokers and clusters, such as demotions and restarts, and remarks on findings.
ACTIONS = Table(
    path="ops/actions",
    key=("action_id",),
    columns=make_columns(
        action_id=ColumnType.STRING,
        kind=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        broker_id=ColumnType.INT,
        starts=ColumnType.TIMESTAMP,
        ends=ColumnType.TIMESTAMP,
        reason=ColumnType.STRING,
        author=ColumnType.STRING,
        detail=ColumnType.STRING,
    ),
    owner=TableOwner.ACTIONS,
)

#: Changes of clusters that were observed or reported; rows are only added. Of the rows of one ``change_id``
#: the latest (``at``) counts. ``before``, ``after`` and ``evidence`` are JSON values.
CHANGES = Table(
    path="ops/changes",
    key=("event_id",),
    columns=make_columns(
        event_id=ColumnType.STRING,
        change_id=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        broker_id=ColumnType.INT,
        topic=ColumnType.STRING,
        segment=ColumnType.STRING,
        segment_value=ColumnType.STRING,
        kind=ColumnType.STRING,
        phase=ColumnType.STRING,
        at=ColumnType.TIMESTAMP,
        starts=ColumnType.TIMESTAMP,
        ends=ColumnType.TIMESTAMP,
        before=ColumnType.STRING,
        after=ColumnType.STRING,
        evidence=ColumnType.STRING,
        source=ColumnType.STRING,
        author=ColumnType.STRING,
        title=ColumnType.STRING,
        link=ColumnType.STRING,
    ),
)

#: Results of data quality checks on batches and weeks.
QUALITY = Table(
    path="ops/quality",
    key=("check_id",),
    columns=make_columns(
        check_id=ColumnType.STRING,
        at=ColumnType.TIMESTAMP,
        batch=ColumnType.STRING,
        suite=ColumnType.STRING,
        expectation=ColumnType.STRING,
        success=ColumnType.BOOLEAN,
        observed=ColumnType.STRING,
        # Set for checks of a week; such a row holds the current result and the time since when it applies.
        week=ColumnType.DATE,
    ),
    volatile=("at",),
)
