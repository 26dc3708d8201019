"""Broker-minutes and cluster-minutes. Columns are only ever added, never renamed."""

from fleetgauge_core.tables.model import Table, Type, columns

_T = Type

BROKER_MINUTES = Table(
    path="silver/broker_minutes",
    key=("cluster_id", "broker_id", "leg", "minute"),
    columns=columns(
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
    small=False,
)

CLUSTER_MINUTES = Table(
    path="silver/cluster_minutes",
    key=("cluster_id", "minute"),
    columns=columns(
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
    small=False,
)
