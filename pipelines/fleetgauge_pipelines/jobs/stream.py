"""The stream: topics to tables, in micro-batches, continuously or until nothing is left."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import Admin, ensure_topics
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.slo.retention import SAMPLES_KEPT
from fleetgauge_pipelines.io.kafka_options import kafka_options
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_topics import raw_records
from fleetgauge_pipelines.jobs.batch import Outcome, Pipeline
from fleetgauge_pipelines.jobs.health import store_health_events
from fleetgauge_pipelines.jobs.table_maintenance import Tidying

#: How long a batch may go on after the stream was asked to stop.
_PATIENCE_S = 90

Clock = Callable[[], datetime]
Narrate = Callable[[int, Outcome], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a micro-batch starts; None: once over all that is there, then stop."""

    every_s: float | None


def run_stream(
    spark: SparkSession,
    lake: Lake,
    fleet: Fleet,
    telemetry: Telemetry,
    pace: Pace,
    clock: Clock,
    narrate: Narrate,
    idle: Callable[[], None],
    stopping: Stopping,
) -> None:
    """Run until ``stopping`` is set or, at pace None, until all that was there is taken.

    ``narrate`` is told of each batch; ``idle`` is called every second in which none runs.

    Raises KafkaUnavailableError when the telemetry cluster is not there.
    """
    pipeline = Pipeline(spark, lake, fleet)
    pipeline.open()
    # What is due is done even if no record comes.
    pipeline.compute_weeks((), f"start/{clock().isoformat()}", clock())
    tidying = Tidying(lake)
    names = telemetry.topics
    topic_ids = _topic_ids(telemetry)

    def take(rows: DataFrame, batch_id: int) -> None:
        rows.persist()
        try:
            store_health_events(lake, rows.where(F.col("topic") == names.health_events.name))
            minutes, now = rows.where(F.col("topic") == names.probe_minutes.name), clock()
            # An agent whose clock is years behind must not add years of unmeasured minutes;
            # what is older by right comes by backfill.
            outcome = pipeline.process(
                raw_records(minutes, topic_ids), f"stream/{batch_id}", now, now - SAMPLES_KEPT
            )
            narrate(batch_id, outcome)
            tidying.step(outcome.ingested.newest, now)
        finally:
            rows.unpersist()

    _wait(_start(spark, lake, telemetry, topic_ids, pace, take), idle, stopping)


def _start(
    spark: SparkSession,
    lake: Lake,
    telemetry: Telemetry,
    topics: Iterable[str],
    pace: Pace,
    take: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    source = (
        spark.readStream.format("kafka")
        .options(**kafka_options(telemetry.access))
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        # What retention took shows as unmeasured minutes; a dead stream would lose more.
        .option("failOnDataLoss", "false")
        .load()
    )
    writer = source.writeStream.foreachBatch(take).option("checkpointLocation", lake.checkpoint)
    if pace.every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{pace.every_s} seconds").start()


def _wait(query: StreamingQuery, idle: Callable[[], None], stopping: Stopping) -> None:
    """Until it ends by itself or is asked to."""
    asked_at = None
    while not query.awaitTermination(1):
        busy = query.status["isTriggerActive"]
        if not busy:
            idle()
        asked_at = asked_at or (time.monotonic() if stopping.is_set() else None)
        # Preferably between batches: one that is broken off leaves its last tables to the next start.
        if asked_at and (not busy or time.monotonic() - asked_at > _PATIENCE_S):
            query.stop()


def _topic_ids(telemetry: Telemetry) -> dict[str, str]:
    """Name to id of the topics read: one that was made anew has other records at the same offsets."""
    ensure_topics(telemetry)
    admin = Admin(telemetry.access, timeout_s=10)
    admin.start()
    names = (telemetry.topics.probe_minutes.name, telemetry.topics.health_events.name)
    return {name: view.topic_id for name in names if (view := admin.topic(name))}
