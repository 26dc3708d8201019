"""The gold tables: weekly results of clusters, the fleet and mirrors, and the evidence behind them.

Columns are added, but never renamed or removed.
"""

from fleetgauge_core.tables.model import ColumnType, Table, make_columns

#: Weekly service levels and error budgets of a cluster; the ``*_raw`` columns ignore corrections.
#: Revision 0 is a week that is still open; a closed week starts with revision 1.
CLUSTER_WEEKS = Table(
    path="gold/cluster_weeks",
    key=("cluster_id", "week", "revision"),
    columns=make_columns(
        cluster_id=ColumnType.STRING,
        week=ColumnType.DATE,
        revision=ColumnType.INT,
        latency_p99_us=ColumnType.LONG,
        latency_p99_censored_us=ColumnType.LONG,
        availability_p99=ColumnType.DOUBLE,
        availability_ratio=ColumnType.DOUBLE,
        bad_minutes=ColumnType.LONG,
        latency_objective_us=ColumnType.LONG,
        latency_budget_minutes=ColumnType.DOUBLE,
        latency_budget_left_minutes=ColumnType.DOUBLE,
        availability_objective=ColumnType.DOUBLE,
        availability_budget_minutes=ColumnType.DOUBLE,
        availability_spent_minutes=ColumnType.DOUBLE,
        latency_p99_us_raw=ColumnType.LONG,
        latency_p99_censored_us_raw=ColumnType.LONG,
        availability_p99_raw=ColumnType.DOUBLE,
        availability_ratio_raw=ColumnType.DOUBLE,
        bad_minutes_raw=ColumnType.LONG,
        latency_objective_us_raw=ColumnType.LONG,
        latency_budget_minutes_raw=ColumnType.DOUBLE,
        latency_budget_left_minutes_raw=ColumnType.DOUBLE,
        availability_objective_raw=ColumnType.DOUBLE,
        availability_budget_minutes_raw=ColumnType.DOUBLE,
        availability_spent_minutes_raw=ColumnType.DOUBLE,
        minutes_measured=ColumnType.LONG,
        minutes_expected=ColumnType.LONG,
        minutes_measured_raw=ColumnType.LONG,
        minutes_expected_raw=ColumnType.LONG,
        coverage=ColumnType.DOUBLE,
        causes=ColumnType.COUNT_MAP,
        corrections=ColumnType.STRING,
        closed=ColumnType.BOOLEAN,
        revision_reason=ColumnType.STRING,
        definition=ColumnType.STRING,
        computed_at=ColumnType.TIMESTAMP,
    ),
    volatile=("computed_at",),
)

#: Quantiles of each weekly metric over the clusters of a segment.
FLEET_WEEKS = Table(
    path="gold/fleet_weeks",
    key=("week", "metric", "segment", "segment_value", "revision"),
    columns=make_columns(
        week=ColumnType.DATE,
        metric=ColumnType.STRING,
        segment=ColumnType.STRING,
        segment_value=ColumnType.STRING,
        revision=ColumnType.INT,
        median=ColumnType.DOUBLE,
        p90=ColumnType.DOUBLE,
        p99=ColumnType.DOUBLE,
        clusters=ColumnType.LONG,
        clusters_excluded=ColumnType.LONG,
        closed=ColumnType.BOOLEAN,
    ),
)

#: Bad minutes by cause, from the latest revision of each week; rewritten with every new revision.
BURN_CAUSES = Table(
    path="gold/burn_causes",
    key=("week", "segment", "segment_value", "cause"),
    columns=make_columns(
        week=ColumnType.DATE,
        segment=ColumnType.STRING,
        segment_value=ColumnType.STRING,
        cause=ColumnType.STRING,
        bad_minutes=ColumnType.LONG,
        clusters=ColumnType.LONG,
    ),
)

#: Pooled samples of the minutes that determine the numbers of a closed week; kept after bronze has expired.
EVIDENCE = Table(
    path="gold/evidence",
    key=("cluster_id", "week", "minute", "broker_id", "leg"),
    columns=make_columns(
        cluster_id=ColumnType.STRING,
        week=ColumnType.DATE,
        minute=ColumnType.TIMESTAMP,
        broker_id=ColumnType.INT,
        leg=ColumnType.STRING,
        attempted=ColumnType.LONG,
        ack_us=ColumnType.INT_ARRAY,
        e2e_us=ColumnType.INT_ARRAY,
        failures=ColumnType.COUNT_MAP,
        why=ColumnType.STRING,
    ),
    small=False,
)

#: What a change cost a cluster while it lasted: minutes over the latency objective, and minutes of
#: availability, each with what the same hours of the four weeks before had (expected), and the 95% interval
#: of the difference. Verdicts are cost, nothing, gained, unclear or unknown; shares are of a week's budgets.
CHANGE_COSTS = Table(
    path="gold/change_costs",
    key=("cluster_id", "change_id"),
    columns=make_columns(
        cluster_id=ColumnType.STRING,
        change_id=ColumnType.STRING,
        kind=ColumnType.STRING,
        broker_id=ColumnType.INT,
        starts=ColumnType.TIMESTAMP,
        ends=ColumnType.TIMESTAMP,
        minutes_measured=ColumnType.LONG,
        control_weeks=ColumnType.INT,
        bad_minutes=ColumnType.DOUBLE,
        bad_minutes_expected=ColumnType.DOUBLE,
        bad_minutes_low=ColumnType.DOUBLE,
        bad_minutes_high=ColumnType.DOUBLE,
        bad_minutes_verdict=ColumnType.STRING,
        latency_budget_share=ColumnType.DOUBLE,
        availability_spent_minutes=ColumnType.DOUBLE,
        availability_spent_minutes_expected=ColumnType.DOUBLE,
        availability_spent_minutes_low=ColumnType.DOUBLE,
        availability_spent_minutes_high=ColumnType.DOUBLE,
        availability_spent_minutes_verdict=ColumnType.STRING,
        availability_budget_share=ColumnType.DOUBLE,
        computed_at=ColumnType.TIMESTAMP,
    ),
    volatile=("computed_at",),
)

#: Weekly recovery metrics of each mirror and consumer group, and of the fleet. Fleet rows have an empty
#: ``subject`` and fill ``median``, ``p90`` and ``p99``; the other rows fill ``value``.
RECOVERY_WEEKS = Table(
    path="gold/recovery_weeks",
    key=("week", "metric", "scope", "subject"),
    columns=make_columns(
        week=ColumnType.DATE,
        metric=ColumnType.STRING,
        scope=ColumnType.STRING,
        subject=ColumnType.STRING,
        value=ColumnType.DOUBLE,
        objective=ColumnType.DOUBLE,
        met=ColumnType.BOOLEAN,
        median=ColumnType.DOUBLE,
        p90=ColumnType.DOUBLE,
        p99=ColumnType.DOUBLE,
        subjects=ColumnType.LONG,
        subjects_excluded=ColumnType.LONG,
        minutes_measured=ColumnType.LONG,
        minutes_expected=ColumnType.LONG,
        coverage=ColumnType.DOUBLE,
        closed=ColumnType.BOOLEAN,
    ),
)
