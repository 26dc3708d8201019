"""The bronze table: records as received from agents. Columns are added, but never renamed or removed."""

from fleetgauge_core.tables.model import ColumnType, Table, make_columns

#: Every valid ProbeMinute record, with the position in the topic or file from which it was read (``source``).
PROBE_MINUTES = Table(
    path="bronze/probe_minutes",
    key=("run_id", "sequence"),
    columns=make_columns(
        agent_id=ColumnType.STRING,
        agent_version=ColumnType.STRING,
        run_id=ColumnType.STRING,
        sequence=ColumnType.LONG,
        vantage=ColumnType.STRING,
        cluster_id=ColumnType.STRING,
        kafka_cluster_uuid=ColumnType.STRING,
        broker_id=ColumnType.INT,
        rack=ColumnType.STRING,
        leg=ColumnType.STRING,
        minute=ColumnType.TIMESTAMP,
        expected_brokers=ColumnType.INT_ARRAY,
        attempted=ColumnType.INT,
        acknowledged=ColumnType.INT,
        received=ColumnType.INT,
        ack_us=ColumnType.INT_ARRAY,
        e2e_us=ColumnType.INT_ARRAY,
        produce_failures=ColumnType.COUNT_MAP,
        consume_failures=ColumnType.COUNT_MAP,
        lost=ColumnType.INT,
        duplicated=ColumnType.INT,
        out_of_order=ColumnType.INT,
        schedule_lag_p95_us=ColumnType.INT,
        schedule_lag_max_us=ColumnType.INT,
        led_by=ColumnType.INT_ARRAY,
        leader_epoch=ColumnType.INT,
        emitted_at=ColumnType.TIMESTAMP,
        source=ColumnType.STRING,
        ingested_at=ColumnType.TIMESTAMP,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    volatile=("source", "ingested_at"),
    small=False,
)
