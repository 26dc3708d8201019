"""Weeks of clusters, of the fleet and of mirrors, and what explains them.

Columns are only ever added, never renamed.
"""

from fleetgauge_core.tables.model import Table, Type, columns

_T = Type

CLUSTER_WEEKS = Table(
    path="gold/cluster_weeks",
    key=("cluster_id", "week", "revision"),
    columns=columns(
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
    columns=columns(
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
    columns=columns(
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
    columns=columns(
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
    small=False,
)

#: Weeks of mirrors and groups, and over all of them; ``subject`` is empty for the fleet's own rows, which
#: have ``median``, ``p90`` and ``p99`` where the others have ``value``.
RECOVERY_WEEKS = Table(
    path="gold/recovery_weeks",
    key=("week", "metric", "scope", "subject"),
    columns=columns(
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
