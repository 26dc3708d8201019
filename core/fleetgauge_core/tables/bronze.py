"""Records as they were received. Columns are only ever added, never renamed."""

from fleetgauge_core.tables.model import Table, Type, columns

_T = Type

PROBE_MINUTES = Table(
    path="bronze/probe_minutes",
    key=("run_id", "sequence"),
    columns=columns(
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
    small=False,
)
