"""The stream: process the telemetry topics in micro-batches, continuously or until no record is left."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import ClusterAdmin, ensure_telemetry_topics
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.slo.retention import SAMPLE_RETENTION
from fleetgauge_pipelines.io.kafka_options import build_kafka_options
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_topics import to_raw_records
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.health import store_health_events
from fleetgauge_pipelines.jobs.table_maintenance import DailyCompaction

#: How long a running batch may continue after a shutdown was requested.
_BATCH_GRACE_S = 90

Clock = Callable[[], datetime]
ReportBatch = Callable[[int, BatchResult], None]


@dataclass(frozen=True, slots=True)
class StreamTrigger:
    """When micro-batches start: every so many seconds, or None to process what is available once and stop."""

    interval_s: float | None


def run_stream(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    telemetry: Telemetry,
    trigger: StreamTrigger,
    clock: Clock,
    report_batch: ReportBatch,
    idle: Callable[[], None],
    shutdown: ShutdownFlag,
) -> None:
    """Process micro-batches until ``shutdown`` is set or, without an interval, until no record is left.

    ``report_batch`` is called with each batch's result, and ``idle`` every second in which no batch runs.

    Raises: KafkaUnavailableError when the telemetry cluster cannot be reached.
    """
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    # Weeks that are due to close are closed even if no record arrives.
    pipeline.compute_weeks((), f"start/{clock().isoformat()}", clock())
    compaction = DailyCompaction(lake)
    names = telemetry.topics
    topic_ids = _topic_ids(telemetry)

    def process(rows: DataFrame, batch_id: int) -> None:
        rows.persist()
        try:
            store_health_events(lake, rows.where(F.col("topic") == names.health_events.name))
            minutes, now = rows.where(F.col("topic") == names.probe_minutes.name), clock()
            # Records of old minutes are refused, because an agent whose clock is years behind would add years
            # of unmeasured minutes. Old records are processed by backfill.
            result = pipeline.process(
                to_raw_records(minutes, topic_ids), f"stream/{batch_id}", now, now - SAMPLE_RETENTION
            )
            report_batch(batch_id, result)
            compaction.compact_next_table(result.ingested.newest, now)
        finally:
            rows.unpersist()

    _wait(_start(spark, lake, telemetry, topic_ids, trigger, process), idle, shutdown)


def _start(
    spark: SparkSession,
    lake: Lake,
    telemetry: Telemetry,
    topics: Iterable[str],
    trigger: StreamTrigger,
    process: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    source = (
        spark.readStream.format("kafka")
        .options(**build_kafka_options(telemetry.access))
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        # Records that the topic's retention deleted show as unmeasured minutes. A stream that fails because
        # of them would lose more.
        .option("failOnDataLoss", "false")
        .load()
    )
    writer = source.writeStream.foreachBatch(process).option("checkpointLocation", lake.checkpoint)
    if trigger.interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{trigger.interval_s} seconds").start()


def _wait(query: StreamingQuery, idle: Callable[[], None], shutdown: ShutdownFlag) -> None:
    """Wait until the query ends, or stop it once a shutdown is requested."""
    requested_at = None
    while not query.awaitTermination(1):
        busy = query.status["isTriggerActive"]
        if not busy:
            idle()
        requested_at = requested_at or (time.monotonic() if shutdown.is_set() else None)
        # Preferably stopped between batches: the next start has to complete the tables of an aborted batch.
        if requested_at and (not busy or time.monotonic() - requested_at > _BATCH_GRACE_S):
            query.stop()


def _topic_ids(telemetry: Telemetry) -> dict[str, str]:
    # The ids are part of a record's source: a topic that was deleted and created again has the same name, and
    # other records at the same offsets.
    ensure_telemetry_topics(telemetry)
    admin = ClusterAdmin(telemetry.access, timeout_s=10)
    admin.start()
    names = (telemetry.topics.probe_minutes.name, telemetry.topics.health_events.name)
    return {name: view.topic_id for name in names if (view := admin.describe_topic(name))}
