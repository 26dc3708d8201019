"""Topics of probe records as frames of raw records: the stream's, and a range of offsets at a time."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Access
from fleetgauge_pipelines.io.kafka_options import kafka_options

#: A range never reaches over a multiple of it, so that ranges are the same when the topic has grown.
_RANGE_RECORDS = 4096

#: A ProbeMinute of 100 probes has about 1 KiB.
_RECORD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``start`` to ``end`` (not included) of a partition."""

    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """About so many."""
        return (self.end - self.start) * _RECORD_BYTES

    @property
    def key(self) -> str:
        return f"{self.topic_id}/{self.partition}/{self.start}-{self.end}"


def offset_ranges(topic_id: str, bounds: Mapping[int, tuple[int, int]]) -> list[OffsetRange]:
    """Everything between each partition's first offset and its end, all partitions side by side."""
    ranges = [
        OffsetRange(topic_id, partition, max(first, at), min(end, at + _RANGE_RECORDS))
        for partition, (first, end) in bounds.items()
        if first < end
        for at in range(first - first % _RANGE_RECORDS, end, _RANGE_RECORDS)
    ]
    return sorted(ranges, key=lambda one: (one.start // _RANGE_RECORDS, one.partition))


def read_ranges(spark: SparkSession, access: Access, topic: str, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Every record of the ranges of one topic, as the stream would take it."""
    starts: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[int]] = defaultdict(list)
    for one in ranges:
        starts[one.partition].append(one.start)
        ends[one.partition].append(one.end)
    rows = (
        spark.read.format("kafka")
        .options(**kafka_options(access))
        .option("assign", json.dumps({topic: list(starts)}))
        .option("startingOffsets", json.dumps({topic: {p: min(all_) for p, all_ in starts.items()}}))
        .option("endingOffsets", json.dumps({topic: {p: max(all_) for p, all_ in ends.items()}}))
        # Retention goes on while a backfill does.
        .option("failOnDataLoss", "false")
        .load()
    )
    return raw_records(rows, {topic: ranges[0].topic_id})


def raw_records(rows: DataFrame, topic_ids: Mapping[str, str]) -> DataFrame:
    """Kafka's columns as the batch wants them; records of one key share a partition."""
    slash = F.lit("/")
    source = F.concat(_id_of_topic(topic_ids), slash, F.col("partition"), slash, F.col("offset"))
    position = F.shiftleft(F.col("partition").cast("long"), 48) + F.col("offset")
    return rows.select(
        "value", source.alias("source"), position.alias("position"), F.lit(None).cast("string").alias("hint")
    )


def _id_of_topic(topic_ids: Mapping[str, str]) -> Column:
    pairs = [F.lit(part) for pair in topic_ids.items() for part in pair]
    return F.create_map(*pairs)[F.col("topic")]
