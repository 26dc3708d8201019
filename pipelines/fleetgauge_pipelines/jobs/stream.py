"""The stream: process the telemetry topics in micro-batches, continuously or until no record is left."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, ReportTopicChange
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.slo.retention import SAMPLE_RETENTION
from fleetgauge_pipelines.io.kafka_options import build_kafka_options
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_topics import to_raw_records
from fleetgauge_pipelines.io.stream_checkpoint import StreamCheckpoint, StreamGeneration
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.changes import store_changes
from fleetgauge_pipelines.jobs.health import store_health_events
from fleetgauge_pipelines.jobs.lost_records import LostRecords
from fleetgauge_pipelines.jobs.stream_topics import StreamChange, StreamTopics, TopicsChangedError
from fleetgauge_pipelines.jobs.table_maintenance import DailyCompaction

_log = logging.getLogger("fleetgauge.stream")

#: How long a running batch may continue after a shutdown was requested.
_BATCH_GRACE_S = 90

#: A batch that waits for records of a topic that was deleted must not wait for long. Its task is tried again.
_FETCH_S = 15
#: A batch of the largest fleets has fewer records. After an outage several batches catch up.
_MOST_RECORDS = 500_000
#: Spark's message when no record has come within this time.
_FETCH_TIMEOUT = "Cannot fetch"
#: Kafka's exception, as Spark names it, for a permission that was taken away.
_DENIED = "AuthorizationException"
_DENIED_TEXT = (
    "the telemetry cluster denies reading its topics: grant the permissions that "
    "`fleetgauge probe acls --for stream` prints"
)
_RETRY_DENIED_S = 10
_QUERY_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"

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
    report_topic_change: ReportTopicChange,
) -> None:
    """Process micro-batches until ``shutdown`` is set or, without an interval, until no record is left.

    ``report_batch`` is called with each batch's result, ``idle`` every second in which no batch runs, and
    ``report_topic_change`` with every change of a topic by which records were or may have been lost.

    Raises: KafkaUnavailableError when the telemetry cluster cannot be reached; LeaseLostError when another
    process may write to the lake.
    """
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    checkpoint = StreamCheckpoint(spark, lake)
    checkpoint.open()
    topics = StreamTopics(telemetry, checkpoint)
    topics.start()
    # Weeks that are due to close are closed even if no record arrives.
    pipeline.compute_weeks((), f"start/{clock().isoformat()}", clock())
    # Changes and findings that come with the first batch may explain minutes of weeks that are closed.
    pipeline.expect_annotations()
    compaction = DailyCompaction(lake)
    names = telemetry.topics
    lost_records = LostRecords(lake, names.probe_minutes.name)
    lost_records.open(clock())
    if trigger.interval_s is not None:
        # Usually the first records come only once the agents' first minute has ended.
        pipeline.warm_up(clock())

    def process(generation: StreamGeneration, rows: DataFrame, batch_id: int) -> None:
        rows.persist()
        try:
            record_changes(topics.check_batch(generation, batch_id, rows))
            now = clock()
            store_health_events(lake, rows.where(F.col("topic") == names.health_events.name))
            changes = rows.where(F.col("topic") == names.changes.name)
            store_changes(lake, to_raw_records(changes, generation.topic_ids), now)
            minutes = rows.where(F.col("topic") == names.probe_minutes.name)
            # Records of old minutes are refused, because an agent whose clock is years behind would add years
            # of unmeasured minutes. Old records are processed by backfill.
            result = pipeline.process(
                to_raw_records(minutes, generation.topic_ids),
                f"{generation.name}/{batch_id}",
                now,
                now - SAMPLE_RETENTION,
            )
            lost_records.refine(now)
            report_batch(batch_id, result)
            compaction.compact_next_table(result.ingested.newest, now)
        finally:
            rows.unpersist()

    def record_changes(changes: Sequence[StreamChange]) -> None:
        lost_records.store(changes, clock())
        for change in changes:
            report_topic_change("telemetry", change.topic, change.change)

    _silence_query_log(spark)
    is_outdated = True
    while is_outdated and not shutdown.is_set():
        opened = topics.open_generation()
        generation = opened.generation
        record_changes(opened.changes)
        if opened.is_interrupted:
            pipeline.complete_batch(f"{generation.name}/start", clock())
        if opened.is_new:
            checkpoint.save_generation(generation, clock())
        query = _start(
            spark,
            checkpoint.location(generation),
            telemetry,
            generation,
            trigger,
            partial(process, generation),
        )
        try:
            is_outdated = _wait(query, generation, topics, idle, shutdown)
        except StreamingQueryException as error:
            # Spark wraps the error of a batch that found the lease lost, with a stack trace.
            lake.confirm_lease()
            if _DENIED not in str(error):
                raise
            if trigger.interval_s is None:
                raise KafkaUnavailableError(_DENIED_TEXT) from None
            _log.warning("%s; it is tried again every %d s", _DENIED_TEXT, _RETRY_DENIED_S)
            shutdown.wait(_RETRY_DENIED_S)
            is_outdated = True


def _silence_query_log(spark: SparkSession) -> None:
    """Keep Spark from logging the stack trace of a query's error, which is raised here too."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_QUERY_LOGGER, log4j.Level.OFF)


def _start(
    spark: SparkSession,
    checkpoint: str,
    telemetry: Telemetry,
    generation: StreamGeneration,
    trigger: StreamTrigger,
    process: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    source = (
        spark.readStream.format("kafka")
        .options(**build_kafka_options(telemetry.access))
        .option("subscribe", ",".join(generation.topic_ids))
        .option("startingOffsets", json.dumps(generation.starts) if generation.starts else "earliest")
        # Each batch finds out which records the topic's retention deleted. A stream that fails because of
        # them would lose more.
        .option("failOnDataLoss", "false")
        .option("kafkaConsumer.pollTimeoutMs", str(_FETCH_S * 1000))
        .option("maxOffsetsPerTrigger", str(_MOST_RECORDS))
        .load()
    )
    writer = source.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    if trigger.interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{trigger.interval_s} seconds").start()


def _wait(
    query: StreamingQuery,
    generation: StreamGeneration,
    topics: StreamTopics,
    idle: Callable[[], None],
    shutdown: ShutdownFlag,
) -> bool:
    """Wait until the query ends, or stop it once a shutdown is requested or a topic was recreated.

    Return whether a query has to start again, with a new generation if a topic was recreated.
    """
    try:
        return _wait_for_end(query, generation, topics, idle, shutdown)
    except StreamingQueryException as error:
        # A batch may have asked a broker that does not know its topics yet; then nothing has changed.
        if TopicsChangedError.__name__ in str(error):
            return True
        # A query also fails when a topic does not exist.
        if topics.has_changed(generation) or topics.has_more_partitions(generation):
            return True
        if _FETCH_TIMEOUT in str(error):
            _log.warning("the telemetry cluster sent no records for %d s: the batch is repeated", _FETCH_S)
            return True
        raise


def _wait_for_end(
    query: StreamingQuery,
    generation: StreamGeneration,
    topics: StreamTopics,
    idle: Callable[[], None],
    shutdown: ShutdownFlag,
) -> bool:
    requested_at = None
    while not query.awaitTermination(1):
        busy = query.status["isTriggerActive"]
        if not busy:
            idle()
            if topics.is_outdated(generation):
                query.stop()
                return True
        requested_at = requested_at or (time.monotonic() if shutdown.is_set() else None)
        # Preferably stopped between batches: the next start has to complete the tables of an aborted batch.
        if requested_at and (not busy or time.monotonic() - requested_at > _BATCH_GRACE_S):
            query.stop()
    return False
