"""The silver tables: a row per broker or cluster and minute. Columns are added, never renamed or removed."""

from fleetgauge_core.tables.model import ColumnType, Table, make_columns

#: Probe results of a broker, leg and minute, pooled over all vantages.
BROKER_MINUTES = Table(
    path="silver/broker_minutes",
    key=("cluster_id", "broker_id", "leg", "minute"),
    columns=make_columns(
        cluster_id=ColumnType.STRING,
        broker_id=ColumnType.INT,
        leg=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        attempted=ColumnType.LONG,
        succeeded=ColumnType.LONG,
        acknowledged=ColumnType.LONG,
        received=ColumnType.LONG,
        availability=ColumnType.DOUBLE,
        latency_p50_us=ColumnType.LONG,
        latency_p99_us=ColumnType.LONG,
        latency_p99_censored_us=ColumnType.LONG,
        latency_max_us=ColumnType.LONG,
        ack_p99_us=ColumnType.LONG,
        failures=ColumnType.COUNT_MAP,
        lost=ColumnType.LONG,
        duplicated=ColumnType.LONG,
        vantages=ColumnType.INT,
        agent_late=ColumnType.BOOLEAN,
        measured=ColumnType.BOOLEAN,
        led_by=ColumnType.INT_ARRAY,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    small=False,
)

#: Latency and availability of a cluster in a minute: of its worst broker, and pooled over its brokers.
CLUSTER_MINUTES = Table(
    path="silver/cluster_minutes",
    key=("cluster_id", "minute"),
    columns=make_columns(
        cluster_id=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        latency_p99_us=ColumnType.LONG,
        latency_worst_home=ColumnType.INT,
        latency_p99_censored_us=ColumnType.LONG,
        latency_pooled_p99_us=ColumnType.LONG,
        availability=ColumnType.DOUBLE,
        availability_worst_home=ColumnType.INT,
        availability_pooled=ColumnType.DOUBLE,
        leader_ack_p99_us=ColumnType.LONG,
        leader_worst_broker=ColumnType.INT,
        brokers_expected=ColumnType.INT,
        brokers_measured=ColumnType.INT,
        attempted=ColumnType.LONG,
        succeeded=ColumnType.LONG,
        cause=ColumnType.STRING,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    small=False,
)
