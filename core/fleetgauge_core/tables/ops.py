"""What the pipeline, people and operations record beside the measurements.

Columns are only ever added, never renamed.
"""

from fleetgauge_core.tables.model import Owner, Table, Type, columns

_T = Type

QUARANTINE = Table(
    path="ops/quarantine",
    key=("source",),
    columns=columns(
        source=_T.STRING,
        value=_T.BINARY,
        reason=_T.STRING,
        detail=_T.STRING,
        ingested_at=_T.TIMESTAMP,
    ),
    volatile=("ingested_at",),
    small=False,
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

HEALTH_EVENTS = Table(
    path="ops/health_events",
    key=("event_id",),
    columns=columns(
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
    columns=columns(
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
    owner=Owner.CORRECTIONS,
)

#: What was done to brokers on purpose; written by what does it, never by the pipeline.
ACTIONS = Table(
    path="ops/actions",
    key=("action_id",),
    columns=columns(
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
    owner=Owner.ACTIONS,
)

QUALITY = Table(
    path="ops/quality",
    key=("check_id",),
    columns=columns(
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
